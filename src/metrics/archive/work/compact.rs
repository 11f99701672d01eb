//! The part of the work that compacts: past days and months as a whole, and the minutes of the present day.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::super::block_io::ArchiveError;
use super::super::compaction::{self, Compacted};
use super::super::outcomes::Outcomes;
use super::{LOOK_UP, Work};
use crate::store::Share;
use crate::store::history::{Outcome, Span, Tier};

/// Hours of the present day whose minutes may be blocks of their own. A chart of a day reads each of them separately, and each
/// compaction writes the minutes of the day once more: with six hours, two and a half times as much as a day has.
const MAX_LOOSE_HOURS: u64 = 6;

impl Work {
    /// Compacts hours into days, and days into months, up to `open`.
    pub(super) async fn compact_past(&mut self, open: i64) -> Result<(), ArchiveError> {
        for (tier, from, into) in [(Tier::Minute, Span::Hour, Span::Day), (Tier::Quarter, Span::Day, Span::Month)] {
            let mut done = Outcomes::default();
            loop {
                let (before, share) = (into.start_of(open), self.shards.share());
                let due = self.store.blocks_before((tier, from), before, &done.left, &share, LOOK_UP).await?;
                let due: BTreeSet<(Uuid, i64)> =
                    due.into_iter().map(|due| (due.server_id, into.start_of(due.start))).collect();
                if due.is_empty() {
                    break;
                }
                if into == Span::Day {
                    self.open_days.extend(due.iter().map(|(server_id, start)| (*start, *server_id)));
                    self.show(false);
                }
                for (server_id, start) in due {
                    self.make_room().await?;
                    let made = match into {
                        Span::Month => compaction::month(&self.store, server_id, start).await,
                        Span::Day | Span::Hour => compaction::day(&self.store, server_id, start).await,
                    };
                    let is_written = self.write_compacted((server_id, into, start), made, &mut done).await?;
                    if is_written && into == Span::Day {
                        self.open_days.remove(&(start, server_id));
                    }
                }
            }
            done.result()?;
        }
        Ok(())
    }

    /// Compacts the minutes of the day of `open`, of servers with too many hours that are blocks of their own.
    pub(super) async fn compact_present_day(&mut self, open: i64) -> Result<(), ArchiveError> {
        if !self.has_new_hours {
            return Ok(());
        }
        let start = Span::Day.start_of(open);
        let (hours, of_day) = ((Tier::Minute, Span::Hour), (start, start + Span::Day.hours() - 1));
        let (mut done, mut is_left) = (Outcomes::default(), false);
        loop {
            let share = self.shards.share();
            if matches!(&share, Share::Of(shards) if shards.is_empty()) {
                // It looks when it is responsible for servers.
                return done.result();
            }
            let due = self.store.with_more_blocks(MAX_LOOSE_HOURS, hours, of_day, &done.left, &share, LOOK_UP).await?;
            if due.is_empty() {
                break;
            }
            for server_id in due {
                self.make_room().await?;
                let made = compaction::present_day(&self.store, server_id, start).await;
                // Where another instance was faster, or something failed, the next look tries again.
                is_left |= !self.write_compacted((server_id, Span::Day, start), made, &mut done).await?;
            }
        }
        self.has_new_hours = is_left;
        done.result()
    }

    /// Writes what a compaction changes, and returns whether that succeeded. A server with damaged blocks, and one for which it
    /// failed, is left out of the rest of the pass.
    async fn write_compacted(
        &mut self,
        (server_id, into, start): (Uuid, Span, i64),
        made: Result<Compacted, ArchiveError>,
        done: &mut Outcomes,
    ) -> Result<bool, ArchiveError> {
        let written = match made {
            Ok(Compacted { sealing, damaged }) => {
                if !damaged.is_empty() {
                    // They stay, and the next look-up would find them again.
                    done.left.push(server_id);
                    self.reported.report(server_id, damaged);
                }
                self.store.seal(&[sealing]).await.map_err(ArchiveError::from)
            }
            Err(error) => Err(error),
        };
        match written {
            Ok(Outcome::Written) => return Ok(true),
            Ok(Outcome::Contested) => done.left.push(server_id),
            Err(error) => {
                metrics::counter!("signalbox_history_damaged_total").increment(1);
                tracing::error!(%error, server.id = %server_id, start, ?into, "blocks could not be compacted");
                done.failed(server_id, error)?;
            }
        }
        Ok(false)
    }
}
