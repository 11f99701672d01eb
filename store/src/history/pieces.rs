use std::collections::HashSet;

use entity::{history_piece, server};
use sea_orm::sea_query::LockType;
use sea_orm::{
    ColumnTrait, EntityTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Set,
};
use uuid::Uuid;

use super::journal::JournalRead;
use super::{Hours, journal};
use crate::{Share, Store, StoreError};

/// Some samples of one server and hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The server.
    pub server_id: Uuid,
    /// In hours since the epoch.
    pub hour: i64,
    /// Its number within the hour, which rises.
    pub number: i64,
    /// How many samples it has.
    pub samples: i64,
    /// How many integers the samples unpack to.
    pub cells: i64,
    /// The samples, as a block in the format of `signalbox_history::block`.
    pub data: Vec<u8>,
    /// The top processes; none without any.
    pub processes: Option<Vec<u8>>,
}

/// What an unsealed hour has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromQueryResult)]
pub struct PieceInfo {
    /// The server.
    pub server_id: Uuid,
    /// In hours since the epoch.
    pub hour: i64,
    /// How many samples it has.
    pub samples: i64,
    /// How many integers the samples unpack to.
    pub cells: i64,
}

impl From<history_piece::Model> for Piece {
    fn from(row: history_piece::Model) -> Self {
        let history_piece::Model { server_id, hour, number, samples, cells, data, processes } = row;
        Self { server_id, hour, number, samples, cells, data, processes }
    }
}

/// Rows of one INSERT: with seven values each it stays far below the limit of bound values.
const ROWS_PER_INSERT: usize = 256;

impl Store {
    /// Moves samples out of the journal: replaces these rows of it by these pieces, or changes nothing. Pieces of deleted
    /// servers are omitted.
    pub async fn move_to_pieces(&self, read: &JournalRead, mut pieces: Vec<Piece>) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        let ids: HashSet<Uuid> = pieces.iter().map(|piece| piece.server_id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let mut there = HashSet::new();
        for ids in ids.chunks(ROWS_PER_INSERT) {
            // Locked, so that nobody deletes the server between this query and the insert. A transaction that writes when the
            // server was last seen does not wait for the lock.
            let known: Vec<Uuid> = server::Entity::find()
                .select_only()
                .column(server::Column::Id)
                .filter(server::Column::Id.is_in(ids.iter().copied()))
                .lock(LockType::KeyShare)
                .into_tuple()
                .all(&transaction)
                .await?;
            there.extend(known);
        }
        pieces.retain(|piece| there.contains(&piece.server_id));
        let mut rows = pieces.into_iter().map(|piece| history_piece::ActiveModel {
            server_id: Set(piece.server_id),
            hour: Set(piece.hour),
            number: Set(piece.number),
            samples: Set(piece.samples),
            cells: Set(piece.cells),
            data: Set(piece.data),
            processes: Set(piece.processes),
        });
        loop {
            let chunk: Vec<_> = rows.by_ref().take(ROWS_PER_INSERT).collect();
            if chunk.is_empty() {
                break;
            }
            // The piece exists when an earlier attempt was committed and only the answer was lost.
            let there_already =
                [history_piece::Column::ServerId, history_piece::Column::Hour, history_piece::Column::Number];
            history_piece::Entity::insert_many(chunk)
                .on_conflict_do_nothing_on(there_already)
                .exec_without_returning(&transaction)
                .await?;
        }
        journal::forget(&transaction, read).await?;
        Ok(transaction.commit().await?)
    }

    /// The pieces of some hours, oldest first.
    pub async fn pieces(&self, hours: Hours) -> Result<Vec<Piece>, StoreError> {
        let rows = of(hours)
            .order_by_asc(history_piece::Column::Hour)
            .order_by_asc(history_piece::Column::Number)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(Piece::from).collect())
    }

    /// The first piece of an hour whose number is greater than `after`.
    pub async fn next_piece(&self, server_id: Uuid, hour: i64, after: i64) -> Result<Option<Piece>, StoreError> {
        let row = of(Hours { server_id, from: hour, until: hour + 1 })
            .filter(history_piece::Column::Number.gt(after))
            .order_by_asc(history_piece::Column::Number)
            .limit(1)
            .one(&self.read)
            .await?;
        Ok(row.map(Piece::from))
    }

    /// The contents of the pieces of some hours; one entry for each hour with any.
    pub async fn piece_infos(&self, hours: Hours) -> Result<Vec<PieceInfo>, StoreError> {
        Ok(infos(of(hours)).all(&self.read).await?)
    }

    /// Removes pieces of hours before `before`.
    pub async fn drop_pieces(&self, before: i64) -> Result<u64, StoreError> {
        self.retried(|| async {
            let old = history_piece::Entity::delete_many().filter(history_piece::Column::Hour.lt(before));
            Ok(old.exec(&self.write).await?.rows_affected)
        })
        .await
    }

    /// Hours before `before` that have pieces, of any server of a share except these, oldest first, at most `limit`.
    pub async fn unsealed(
        &self,
        before: i64,
        but: &[Uuid],
        share: &Share,
        limit: u64,
    ) -> Result<Vec<PieceInfo>, StoreError> {
        let of = history_piece::Entity::find()
            .filter(history_piece::Column::Hour.lt(before))
            .filter(history_piece::Column::ServerId.is_not_in(but.iter().copied()))
            .apply_if(share.condition("server_id"), QueryFilter::filter);
        Ok(infos(of.limit(limit)).all(&self.read).await?)
    }
}

fn of(hours: Hours) -> sea_orm::Select<history_piece::Entity> {
    history_piece::Entity::find()
        .filter(history_piece::Column::ServerId.eq(hours.server_id))
        .filter(history_piece::Column::Hour.gte(hours.from))
        .filter(history_piece::Column::Hour.lt(hours.until))
}

fn infos(of: sea_orm::Select<history_piece::Entity>) -> sea_orm::Selector<sea_orm::SelectModel<PieceInfo>> {
    // PostgreSQL's sum of integers is not an integer.
    let sum = |column: history_piece::Column| column.sum().cast_as("BIGINT");
    of.select_only()
        .column(history_piece::Column::ServerId)
        .column(history_piece::Column::Hour)
        .expr_as(sum(history_piece::Column::Samples), "samples")
        .expr_as(sum(history_piece::Column::Cells), "cells")
        .group_by(history_piece::Column::Hour)
        .group_by(history_piece::Column::ServerId)
        .order_by_asc(history_piece::Column::Hour)
        .order_by_asc(history_piece::Column::ServerId)
        .into_model()
}
