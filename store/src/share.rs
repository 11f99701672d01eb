//! An instance's share of the work that must happen once: all servers, channels and batches are spread over a fixed number of
//! shards by their ids.

use sea_orm::sea_query::{Expr, ExprTrait, SimpleExpr};
use uuid::Uuid;

/// The number of shards. It must be the same in every instance.
pub const SHARDS: i16 = 64;

/// The shards that an instance owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// All of them: it is the only instance.
    All,
    /// These.
    Of(Vec<i16>),
}

impl Share {
    /// Whether the share contains something of this id.
    pub fn holds(&self, id: Uuid) -> bool {
        match self {
            Self::All => true,
            Self::Of(shards) => shards.contains(&shard_of(id)),
        }
    }

    /// Whether the share contains nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Of(shards) if shards.is_empty())
    }

    /// The condition that the share contains what a column names; none where it contains everything. Only PostgreSQL supports
    /// several instances.
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

/// The shard of an id: its last byte, which is random in every version of UUID that the service creates.
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
