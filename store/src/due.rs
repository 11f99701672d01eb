//! Which message of a channel is next.
//!
//! The messages of a channel go out oldest first, but one that takes long or is refused is overtaken by the others, and may arrive
//! hours after them. The end of an alert overtakes nothing about that alert: a receiver that got the beginning last would believe
//! that the alert is open. So what waits that way is no candidate until everything before it was sent or given up, neither to
//! claim nor to wake for.

use entity::{Millis, notification, notification_channel};
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait, Func, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::claims::{PARTLY, SENDING, SPLIT, UNREACHABLE};
use super::outbox::{PENDING, REMINDER, RESOLVED, TRIGGERED};
use super::{Notification, Share, Store, StoreError};

/// The kind of the channels that use the service's mail server.
const EMAIL: &str = "email";

/// The values of `hold` for which the channel's other messages wait.
const HOLDING: [&str; 3] = [SENDING, UNREACHABLE, SPLIT];

/// A channel with messages to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The channel.
    pub channel_id: Uuid,
    /// The channel's owner.
    pub owner_id: Uuid,
    /// Whether it uses the service's mail server, which all such channels share.
    pub is_mail: bool,
    /// When its next message is due.
    pub at: Timestamp,
    /// Whether that message was tried before and the channel's others wait for it.
    pub is_held: bool,
}

impl Store {
    /// The enabled channels of a share with messages to send, those that have waited longest first.
    pub async fn channels_due(&self, share: &Share) -> Result<Vec<Due>, StoreError> {
        use notification::Column;
        let enabled = |kind: Option<&str>| {
            let kind = kind.map(|kind| notification_channel::Column::Kind.eq(kind));
            Query::select()
                .column(notification_channel::Column::Id)
                .from(notification_channel::Entity)
                .and_where(notification_channel::Column::IsEnabled.eq(true))
                .and_where_option(kind)
                .to_owned()
        };
        let is_holding = Column::Hold.is_in(HOLDING);
        let held = CaseStatement::new().case(is_holding, Expr::col(Column::NextAttemptAt));
        let mail = CaseStatement::new().case(Column::ChannelId.in_subquery(enabled(Some(EMAIL))), 1).finally(0);
        let waiting = candidates(None)
            .select_only()
            .column(Column::ChannelId)
            .column(Column::OwnerId)
            .column_as(Column::NextAttemptAt.min(), "first_at")
            .column_as(SimpleExpr::from(Func::max(held)), "held_until")
            .column_as(SimpleExpr::from(Func::max(mail)), "is_mail")
            .filter(Column::NextAttemptAt.is_not_null())
            .filter(Column::ChannelId.in_subquery(enabled(None)))
            .filter(Condition::all().add_option(share.condition("notifications.channel_id")))
            .group_by(Column::ChannelId)
            .group_by(Column::OwnerId)
            .into_tuple::<(Uuid, Uuid, Millis, Option<Millis>, i32)>()
            .all(&self.read)
            .await?;
        let mut due: Vec<Due> = waiting
            .into_iter()
            .map(|(channel_id, owner_id, first, held, mail)| Due {
                channel_id,
                owner_id,
                is_mail: mail > 0,
                at: held.unwrap_or(first).into(),
                is_held: held.is_some(),
            })
            .collect();
        due.sort_unstable_by_key(|due| due.at);
        Ok(due)
    }
}

/// The rows of the message that is due on a channel, oldest first; none when nothing is due.
pub(super) async fn next_message(
    connection: &impl ConnectionTrait,
    channel_id: Uuid,
    now: Timestamp,
    most: u64,
) -> Result<Vec<Notification>, StoreError> {
    use notification::Column;
    let of_channel = || candidates(Some(channel_id));
    let due = || of_channel().filter(Column::NextAttemptAt.lte(Millis::from(now)));
    let held = of_channel().filter(Column::Hold.is_in(HOLDING)).order_by_asc(Column::Id).all(connection).await?;
    if let Some(first) = held.first() {
        if first.next_attempt_at.is_none_or(|at| at > Millis::from(now)) {
            return Ok(Vec::new());
        }
        if first.hold.as_deref() == Some(SPLIT) {
            return Ok(next_part(held, most));
        }
        return whole(connection, first).await;
    }
    let new = due().filter(Column::Attempts.eq(0)).order_by_asc(Column::Id).limit(most).all(connection).await?;
    if !new.is_empty() {
        return Ok(new);
    }
    let refused = due().order_by_asc(Column::NextAttemptAt).order_by_asc(Column::Id).one(connection).await?;
    let Some(refused) = refused else { return Ok(Vec::new()) };
    whole(connection, &refused).await
}

/// The rows of the next part of what was too large, among those for which the channel's others wait.
fn next_part(held: Vec<Notification>, most: u64) -> Vec<Notification> {
    let Some(first) = held.first().cloned() else { return Vec::new() };
    // A message has one number of attempts and one state of its recipients; rows of several messages may have been split.
    let joins = |row: &Notification| {
        row.hold == first.hold && row.attempts == first.attempts && row.recipients == first.recipients
    };
    held.into_iter().take_while(joins).take(usize::try_from(most).unwrap_or(usize::MAX)).collect()
}

/// All rows of the message that a row belongs to. An attempted message keeps them: a recipient that has it knows its id, and
/// must not find another content under it.
async fn whole(connection: &impl ConnectionTrait, row: &Notification) -> Result<Vec<Notification>, StoreError> {
    use notification::Column;
    let rows = pending(Some(row.channel_id)).filter(Column::MessageId.eq(row.message_id)).order_by_asc(Column::Id);
    Ok(rows.all(connection).await?)
}

/// What is still to be sent on a channel, or on all.
fn pending(channel_id: Option<Uuid>) -> Select<notification::Entity> {
    use notification::Column;
    notification::Entity::find()
        .filter(Column::Status.eq(PENDING))
        .filter(Condition::all().add_option(channel_id.map(|id| Column::ChannelId.eq(id))))
}

/// What may be sent on a channel, or on all, as soon as it is due. The end of an alert may not while a beginning or a reminder of
/// that alert was attempted on the same channel and is tried again. What was never attempted goes out with the end or before it.
fn candidates(channel_id: Option<Uuid>) -> Select<notification::Entity> {
    use notification::Column;
    let earlier = pending(channel_id)
        .select_only()
        .columns([Column::ChannelId, Column::AlertId])
        .filter(Column::Event.is_in([TRIGGERED, REMINDER]))
        .filter(Column::Attempts.gt(0))
        .filter(Column::Hold.is_null().or(Column::Hold.ne(PARTLY)));
    let alert = Expr::tuple([Expr::col(Column::ChannelId), Expr::col(Column::AlertId)]);
    let waits =
        Condition::all().add(Column::Event.eq(RESOLVED)).add(alert.in_subquery(QueryTrait::into_query(earlier)));
    // A CASE, because for NOT IN SQLite looks through the whole set for nulls, once for each row.
    let is_candidate: SimpleExpr = CaseStatement::new().case(waits, false).finally(true).into();
    pending(channel_id).filter(is_candidate)
}

#[cfg(test)]
mod tests {
    use sea_orm::DatabaseBackend;

    use super::*;
    use crate::DatabaseSettings;

    /// SQLite's plan for the candidates.
    async fn plan(channel_id: Option<Uuid>) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        let store = Store::open(&url, DatabaseSettings::default()).await.unwrap();
        let mut query = candidates(channel_id).build(DatabaseBackend::Sqlite);
        query.sql = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let steps = store.read.query_all_raw(query).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("", "detail").unwrap()).collect()
    }

    #[tokio::test]
    async fn an_index_finds_the_candidates_and_what_others_wait_for() {
        for (channel_id, key) in [(None, "(status=?)"), (Some(Uuid::nil()), "(status=? AND channel_id=?)")] {
            let plan = plan(channel_id).await;

            let search = format!("SEARCH notifications USING INDEX notifications_by_status {key}");
            let searches = plan.iter().filter(|step| **step == search).count();
            assert_eq!(searches, 2, "{plan:#?}");
            assert!(!plan.iter().any(|step| step.starts_with("SCAN") || step.contains("CORRELATED")), "{plan:#?}");
        }
    }
}
