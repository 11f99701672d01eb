//! The storage that an account's commands take, and what is deleted when it is too much.

use entity::{command, command_batch};
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{Quota, Store, StoreError};

/// The size of a row without its texts.
const ROW_BYTES: i64 = 256;

/// Rows that one statement reads or changes, so that other writers get their turn.
const AT_ONCE: u64 = 200;

/// The bytes of a command's row. Neither database reads long values to determine their size in bytes.
const OF_COMMAND: &str = "octet_length(command) + coalesce(octet_length(stdin), 0) + coalesce(octet_length(signed), 0) + \
    coalesce(octet_length(output), 0) + coalesce(octet_length(output_parts), 0)";
const OF_BATCH: &str = "octet_length(command)";

/// The size of a stored command or batch with these texts.
pub(super) fn row_bytes(texts: usize) -> u64 {
    texts as u64 + ROW_BYTES.unsigned_abs()
}

/// PostgreSQL's sum of integers is not an integer.
fn sum(bytes: &str) -> SimpleExpr {
    Expr::cust(format!("CAST(coalesce(sum({bytes} + {ROW_BYTES}), 0) AS BIGINT)"))
}

/// The states of commands that have not ended.
const UNFINISHED: [&str; 2] = ["queued", "running"];

/// The result of making room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed {
    /// Bytes.
    pub freed: u64,
    /// Whether the account still has more than its quota, because the rest must not be deleted.
    pub is_full: bool,
}

/// A command and its size.
#[derive(Debug, sea_orm::FromQueryResult)]
struct Weighed {
    id: Uuid,
    bytes: i64,
    output_bytes: i64,
}

impl Store {
    /// How many bytes the commands and batches of an account take.
    pub async fn stored_command_bytes(&self, owner_id: Uuid) -> Result<u64, StoreError> {
        let of_commands = command::Entity::find()
            .select_only()
            .column_as(sum(OF_COMMAND), "bytes")
            .filter(command::Column::OwnerId.eq(owner_id));
        let of_batches = command_batch::Entity::find()
            .select_only()
            .column_as(sum(OF_BATCH), "bytes")
            .filter(command_batch::Column::OwnerId.eq(owner_id));
        let commands: Option<i64> = of_commands.into_tuple().one(&self.read).await?;
        let batches: Option<i64> = of_batches.into_tuple().one(&self.read).await?;
        Ok((commands.unwrap_or_default() + batches.unwrap_or_default()).unsigned_abs())
    }

    /// Checks that an account may add this many bytes of commands. Commands that have ended can be deleted, and do not count.
    pub async fn expect_command_room(&self, owner_id: Uuid, adding: u64) -> Result<(), StoreError> {
        self.command_room_in(&self.read, owner_id, adding).await
    }

    pub(super) async fn command_room_in(
        &self,
        connection: &impl ConnectionTrait,
        owner_id: Uuid,
        adding: u64,
    ) -> Result<(), StoreError> {
        let limit = self.quotas.command_bytes;
        let unfinished: Option<i64> = command::Entity::find()
            .select_only()
            .column_as(sum(OF_COMMAND), "bytes")
            .filter(command::Column::Status.is_in(UNFINISHED))
            .filter(command::Column::OwnerId.eq(owner_id))
            .into_tuple()
            .one(connection)
            .await?;
        let is_room = unfinished.unwrap_or_default().unsigned_abs().saturating_add(adding) <= limit;
        if is_room { Ok(()) } else { Err(StoreError::QuotaExceeded { quota: Quota::CommandStorage, limit }) }
    }

    /// Accounts that have commands.
    pub async fn owners_of_commands(&self) -> Result<Vec<Uuid>, StoreError> {
        let owners = command_batch::Entity::find().select_only().column(command_batch::Column::OwnerId).distinct();
        let mut all: Vec<Uuid> = owners.into_tuple().all(&self.read).await?;
        let owners = command::Entity::find().select_only().column(command::Column::OwnerId).distinct();
        all.extend(owners.into_tuple::<Uuid>().all(&self.read).await?);
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Makes room where an account's commands exceed its quota. The output of the oldest commands is deleted first, then the
    /// commands themselves and the batches, but never those that have not ended. It deletes somewhat more than necessary, so
    /// that the next command does not have to make room again.
    pub async fn trim_commands(&self, owner_id: Uuid) -> Result<Trimmed, StoreError> {
        let used = self.stored_command_bytes(owner_id).await?;
        let limit = self.quotas.command_bytes;
        if used <= limit {
            return Ok(Trimmed { freed: 0, is_full: false });
        }
        let wanted = used - (limit - limit / 16);
        let mut freed = 0;
        for what in [Gives::Output, Gives::Itself] {
            freed += self.take_oldest(owner_id, what, wanted.saturating_sub(freed)).await?;
        }
        if freed < wanted {
            let batches = command_batch::Entity::delete_many()
                .filter(command_batch::Column::OwnerId.eq(owner_id))
                .filter(command_batch::Column::FinishedAt.is_not_null());
            self.retried(|| async { Ok(batches.clone().exec(&self.write).await?.rows_affected) }).await?;
        }
        Ok(Trimmed { freed, is_full: used.saturating_sub(freed) > limit })
    }

    /// Deletes this many bytes of an account's oldest ended commands, if there are as many.
    async fn take_oldest(&self, owner_id: Uuid, what: Gives, wanted: u64) -> Result<u64, StoreError> {
        let mut freed = 0;
        while freed < wanted {
            let oldest = command::Entity::find()
                .select_only()
                .column(command::Column::Id)
                .column_as(Expr::cust(format!("CAST({OF_COMMAND} + {ROW_BYTES} AS BIGINT)")), "bytes")
                .column_as(
                    Expr::cust(
                        "CAST(coalesce(octet_length(output), 0) + coalesce(octet_length(output_parts), 0) AS BIGINT)",
                    ),
                    "output_bytes",
                )
                .filter(command::Column::OwnerId.eq(owner_id))
                .filter(command::Column::FinishedAt.is_not_null())
                .filter(what.is_there())
                .order_by_asc(command::Column::Id)
                .limit(AT_ONCE)
                .into_model::<Weighed>();
            let mut ids = Vec::new();
            for row in oldest.all(&self.read).await? {
                if freed >= wanted {
                    break;
                }
                let bytes = match what {
                    Gives::Output => row.output_bytes,
                    Gives::Itself => row.bytes,
                };
                freed += bytes.unsigned_abs();
                ids.push(row.id);
            }
            if ids.is_empty() {
                break;
            }
            self.take(&ids, what).await?;
        }
        Ok(freed)
    }

    async fn take(&self, ids: &[Uuid], what: Gives) -> Result<(), StoreError> {
        self.retried(|| async {
            match what {
                Gives::Output => {
                    command::Entity::update_many()
                        .col_expr(command::Column::Output, Expr::value(None::<Vec<u8>>))
                        .col_expr(command::Column::OutputParts, Expr::value(None::<String>))
                        .col_expr(command::Column::IsTruncated, Expr::value(true))
                        .filter(command::Column::Id.is_in(ids.iter().copied()))
                        .exec(&self.write)
                        .await?;
                }
                Gives::Itself => {
                    let gone = command::Entity::delete_many().filter(command::Column::Id.is_in(ids.iter().copied()));
                    gone.exec(&self.write).await?;
                }
            }
            Ok(())
        })
        .await
    }
}

/// What to delete of an old command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Output,
    Itself,
}

impl Gives {
    /// The commands that have it.
    fn is_there(self) -> sea_orm::Condition {
        let all = sea_orm::Condition::all();
        match self {
            Self::Output => all.add(command::Column::Output.is_not_null()),
            Self::Itself => all,
        }
    }
}
