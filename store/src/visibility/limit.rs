//! The bound of a token on the servers that its user may see.

use std::sync::Arc;

use entity::server;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition};
use uuid::Uuid;

use super::has_one_of;
use crate::TokenScope;

/// What a token leaves of the servers that its user may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
    /// All of them.
    None,
    /// Those with this tag.
    Tag(String),
    /// These.
    Ids(Arc<[Uuid]>),
    /// None of them.
    Nothing,
}

impl Limit {
    /// Those for which a token is.
    pub fn of(scope: &TokenScope) -> Self {
        match scope {
            TokenScope::All => Self::None,
            TokenScope::Tag(tag) => Self::Tag(tag.clone()),
            TokenScope::ServerIds(ids) => Self::Ids(ids.as_slice().into()),
        }
    }

    /// The condition on the table of servers.
    pub fn condition(&self) -> Option<Condition> {
        Some(match self {
            Self::None => return None,
            Self::Tag(tag) => Condition::all().add(has_one_of(std::slice::from_ref(tag))),
            Self::Ids(ids) => Condition::all().add(server::Column::Id.is_in(ids.iter().copied())),
            Self::Nothing => Condition::all().add(Expr::cust("1 = 0")),
        })
    }

    /// The condition, and this one.
    pub fn and(&self, condition: Condition) -> Condition {
        match self.condition() {
            None => condition,
            // A condition of its own: the other one may be of alternatives.
            Some(limit) => Condition::all().add(condition).add(limit),
        }
    }
}
