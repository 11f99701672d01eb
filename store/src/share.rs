//! Which part of the work that must happen once is one instance's: all servers, channels and batches are spread over a
//! fixed number of shards by their ids.

use sea_orm::sea_query::{Expr, ExprTrait, SimpleExpr};
use uuid::Uuid;

/// How many parts the work has. Every instance must take the same number.
pub const SHARDS: i16 = 64;

/// The shards that an instance looks after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// It is the only instance.
    All,
    Of(Vec<i16>),
}

impl Share {
    /// Whether something of this id is among it.
    pub fn holds(&self, id: Uuid) -> bool {
        match self {
            Self::All => true,
            Self::Of(shards) => shards.contains(&shard_of(id)),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Of(shards) if shards.is_empty())
    }

    /// That what a column names is among it; none where everything is. Only PostgreSQL has several instances.
    pub(super) fn condition(&self, column: &str) -> Option<SimpleExpr> {
        match self {
            Self::All => None,
            Self::Of(shards) => {
                let shard = Expr::cust(format!("get_byte(uuid_send({column}), 15) % {SHARDS}"));
                Some(shard.is_in(shards.iter().map(|shard| i32::from(*shard))))
            }
        }
    }
}

/// The shard of an id: its last byte, which is random in every version of UUID that is made here.
pub fn shard_of(id: Uuid) -> i16 {
    let [.., last] = id.into_bytes();
    i16::from(last) % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_holds_what_lies_in_its_shards() {
        let share = Share::Of(vec![0, 63]);

        assert!(Share::All.holds(Uuid::from_u128(5)));
        assert!(share.holds(Uuid::from_u128(64)) && share.holds(Uuid::from_u128(255)));
        assert!(!share.holds(Uuid::from_u128(1)));
    }
}
