//! The audit log.
use std::sync::Arc;
use uuid::Uuid;
/// Who did something, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub user_id: Option<Uuid>,
    pub username: Arc<str>,
    pub login_id: Option<Uuid>,
    pub address: String,
}
