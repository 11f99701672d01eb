//! The secret of an authenticator app, one per user.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "totp_secrets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: Uuid,
    /// The secret, encrypted.
    pub sealed: Vec<u8>,
    pub created_at: Millis,
    /// When the user showed that they have it; none means that it is not asked for yet.
    pub confirmed_at: Option<Millis>,
    /// The step of the last accepted code. No code of this step or an earlier one is accepted again.
    pub last_step: i64,
    /// Wrong codes since `failing_since`.
    pub failures: i32,
    pub failing_since: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
