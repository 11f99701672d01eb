//! Replaces samples and blocks by what was made of them. On PostgreSQL another instance may do the same at the same time, so
//! everything that is removed must be what was read, or nothing changes.

use std::collections::HashSet;

use entity::{history_block, history_piece, history_sample, server};
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, Statement, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::partitions::{Parted, is_any};
use super::{Block, BlockKey, blocks};
use crate::{Store, StoreError};

/// The SQLSTATEs that mean that another transaction was faster: a unique violation, a serialization failure, a deadlock.
const FASTER: [&str; 3] = ["23505", "40001", "40P01"];

/// What sealing changes for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealing {
    /// The server.
    pub server_id: Uuid,
    /// Pieces to remove.
    pub pieces: Vec<PiecesTaken>,
    /// Samples to remove.
    pub samples: Vec<SamplesTaken>,
    /// Blocks to remove.
    pub replaced: Vec<Replaced>,
    /// Blocks to insert.
    pub blocks: Vec<Block>,
}

impl Sealing {
    /// No change yet.
    pub fn of(server_id: Uuid) -> Self {
        let (pieces, samples, replaced, blocks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { server_id, pieces, samples, replaced, blocks }
    }
}

/// Pieces of an hour to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiecesTaken {
    /// In hours since the epoch.
    pub hour: i64,
    /// The number of the last one.
    pub up_to: i64,
    /// How many there are.
    pub count: usize,
}

/// Samples of an hour to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplesTaken {
    /// In hours since the epoch.
    pub hour: i64,
    /// When each was taken, in milliseconds since the epoch.
    pub at: Vec<i64>,
    /// Samples after this time are removed without being read, because the hour has too many.
    pub left_out_after: Option<i64>,
}

/// A block to remove, if it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Which block it is.
    pub key: BlockKey,
    /// Its content when it was read; none where nobody else changes it.
    pub was: Option<Fingerprint>,
}

/// The parts of a block with a digest of each; empty for a block that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint(Vec<(i32, Vec<u8>)>);

/// The result of sealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was written.
    Written,
    /// Another instance was faster, and nothing was written.
    Contested,
}

/// Why a transaction did not succeed.
enum Stopped {
    Contested,
    Failed(StoreError),
}

impl From<DbErr> for Stopped {
    fn from(error: DbErr) -> Self {
        if is_any(&error, &FASTER) { Self::Contested } else { Self::Failed(error.into()) }
    }
}

impl Store {
    /// A block to remove, as it was read; none when it did not exist.
    pub fn replaced(&self, key: BlockKey, read: Option<&Block>) -> Replaced {
        let digests = |block: &Block| {
            let digest = |(part, data): (&usize, &Vec<u8>)| (number(*part), Sha256::digest(data).to_vec());
            Fingerprint(block.parts.iter().map(digest).collect())
        };
        // An embedded database has one process that changes blocks, one step at a time.
        let was = self.has_sample_table().then(|| read.map(digests).unwrap_or_default());
        Replaced { key, was }
    }

    /// Writes the changes of some servers' sealing, all or none. For a server that was deleted nothing is inserted.
    pub async fn seal(&self, sealings: &[Sealing]) -> Result<Outcome, StoreError> {
        let mut needed = HashSet::new();
        if self.has_sample_table() {
            let keys = sealings.iter().flat_map(|sealing| &sealing.blocks).map(|block| block.info.key);
            needed.extend(keys.map(|key| Parted::Blocks(key.tier).partition(key.start)));
        }
        let write = async || match self.try_seal(sealings).await {
            Ok(()) => Ok(Outcome::Written),
            Err(Stopped::Contested) => Ok(Outcome::Contested),
            Err(Stopped::Failed(error)) => Err(error),
        };
        self.in_partitions(&needed, write).await
    }

    async fn try_seal(&self, sealings: &[Sealing]) -> Result<(), Stopped> {
        let transaction = self.write.begin().await?;
        for sealing in sealings {
            let server_id = sealing.server_id;
            for pieces in &sealing.pieces {
                let gone = take_pieces(&transaction, server_id, pieces).await?;
                if self.has_sample_table() {
                    as_many(gone, pieces.count)?;
                }
            }
            for samples in &sealing.samples {
                take_samples(&transaction, server_id, samples).await?;
            }
            for replaced in &sealing.replaced {
                take_block(&transaction, server_id, replaced).await?;
            }
            // Locked, so that nobody deletes the server between this query and the insert. A transaction that writes when the
            // server was last seen does not wait for the lock.
            if server::Entity::find_by_id(server_id).lock(LockType::KeyShare).one(&transaction).await?.is_some() {
                for block in &sealing.blocks {
                    blocks::insert(&transaction, server_id, block.clone()).await?;
                }
            }
        }
        Ok(transaction.commit().await?)
    }
}

async fn take_pieces(transaction: &impl ConnectionTrait, server_id: Uuid, pieces: &PiecesTaken) -> Result<u64, DbErr> {
    let gone = history_piece::Entity::delete_many()
        .filter(history_piece::Column::ServerId.eq(server_id))
        .filter(history_piece::Column::Hour.eq(pieces.hour))
        .filter(history_piece::Column::Number.lte(pieces.up_to))
        .exec(transaction)
        .await?;
    Ok(gone.rows_affected)
}

async fn take_samples(
    transaction: &impl ConnectionTrait,
    server_id: Uuid,
    samples: &SamplesTaken,
) -> Result<(), Stopped> {
    const TAKE: &str = "DELETE FROM history_samples WHERE server_id = $1 AND hour = $2 AND at = ANY ($3::bigint[])";
    let values: [Value; 3] = [server_id.into(), samples.hour.into(), samples.at.clone().into()];
    let statement = Statement::from_sql_and_values(transaction.get_database_backend(), TAKE, values);
    as_many(transaction.execute_raw(statement).await?.rows_affected(), samples.at.len())?;
    if let Some(after) = samples.left_out_after {
        history_sample::Entity::delete_many()
            .filter(history_sample::Column::ServerId.eq(server_id))
            .filter(history_sample::Column::Hour.eq(samples.hour))
            .filter(history_sample::Column::At.gt(after))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

async fn take_block(transaction: &impl ConnectionTrait, server_id: Uuid, replaced: &Replaced) -> Result<(), Stopped> {
    const TAKE: &str = "\
        DELETE FROM history_blocks AS block USING unnest($5::int[], $6::bytea[]) AS was (part, digest) \
        WHERE block.server_id = $1 AND block.tier = $2 AND block.span = $3 AND block.start = $4 \
        AND block.part = was.part AND sha256(block.data) = was.digest";
    let BlockKey { tier, span, start } = replaced.key;
    let Some(Fingerprint(was)) = &replaced.was else {
        history_block::Entity::delete_many()
            .filter(history_block::Column::ServerId.eq(server_id))
            .filter(history_block::Column::Tier.eq(tier as i16))
            .filter(history_block::Column::Span.eq(span as i16))
            .filter(history_block::Column::Start.eq(start))
            .exec(transaction)
            .await?;
        return Ok(());
    };
    // There was none. If one exists now, the insert of its replacement fails.
    if was.is_empty() {
        return Ok(());
    }
    let (parts, digests): (Vec<i32>, Vec<Vec<u8>>) = was.iter().cloned().unzip();
    let (tier, span) = (tier as i16, span as i16);
    let values: [Value; 6] = [server_id.into(), tier.into(), span.into(), start.into(), parts.into(), digests.into()];
    let statement = Statement::from_sql_and_values(transaction.get_database_backend(), TAKE, values);
    as_many(transaction.execute_raw(statement).await?.rows_affected(), was.len())
}

fn as_many(gone: u64, read: usize) -> Result<(), Stopped> {
    if gone == read as u64 { Ok(()) } else { Err(Stopped::Contested) }
}

fn number(part: usize) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}
