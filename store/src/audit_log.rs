//! The audit log. A change and its entry are one transaction, so that neither exists without the other.
//!
//! An append is two statements. The first increments the head, which serialises appends, and returns the previous hash; the
//! second inserts the entry, and a trigger copies its hash to the head. Many entries of one transaction are a few statements
//! together. Every other append waits until the transaction ends, so the append is the last step of a transaction: a transaction
//! that waits for it holds nothing that the first one needs.

use std::collections::{HashMap, HashSet};

use entity::{Millis, audit_entry, audit_head, server};
use sea_orm::sea_query::{Expr, ExprTrait, LikeExpr, Query};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use serde::Serialize;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::AgentInfo;
use uuid::Uuid;

use super::commands::ROWS_AT_ONCE;
use super::server_filter::escape_like;
use super::{Page, PageRequest, Store, StoreError};
use crate::audit::Entry;
use crate::audit::chain::{Head, Record};

/// The key of the head's only row.
const HEAD: i16 = 1;

/// Entries that one statement inserts. A signed order has up to some hundred KB.
const ENTRIES_AT_ONCE: usize = 64;

/// Which entries a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Entries that concern this user's property; every user's for none.
    pub owner_id: Option<Uuid>,
    /// Entries that concern this server.
    pub server_id: Option<Uuid>,
    /// The beginning of the action, in lower case.
    pub action: Option<String>,
    /// Entries from this time on.
    pub since: Option<Timestamp>,
    /// Entries before this time.
    pub until: Option<Timestamp>,
}

/// Entries that are changes, and how far the log was read for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditChanges {
    /// The entries, oldest first.
    pub records: Vec<Record>,
    /// The entry up to which there are no others.
    pub up_to: Head,
    /// Whether the log no longer contains the entry up to which it was read before.
    pub is_rewound: bool,
}

impl Store {
    /// Writes an entry about an action that changes nothing else in the database.
    pub async fn record(&self, entry: Entry) -> Result<(), StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            record_in(&transaction, entry.clone()).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Lists entries, newest first.
    pub async fn list_audit(&self, filter: AuditFilter, page: PageRequest) -> Result<Page<Record>, StoreError> {
        let query = audit_entry::Entity::find().filter(condition(filter));
        let total = query.clone().count(&self.read).await?;
        let rows =
            query.order_by_desc(audit_entry::Column::Seq).limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items: rows.into_iter().map(Record::from).collect(), total })
    }

    /// Returns the entries after `after`, oldest first, at most `limit`, of all users, to verify the chain.
    pub async fn audit_after(&self, after: Option<i64>, limit: u64) -> Result<Vec<Record>, StoreError> {
        let behind = after.map(|seq| audit_entry::Column::Seq.gt(seq));
        let rows = audit_entry::Entity::find()
            .filter(Condition::all().add_option(behind))
            .order_by_asc(audit_entry::Column::Seq)
            .limit(limit)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(Record::from).collect())
    }

    /// Returns the entries after `after` with one of these actions, at most `limit`. If the log has lost `after`, as after a
    /// failover of the database, returns those among its last `limit` entries.
    pub async fn audit_changes(&self, after: &Head, actions: &[&str], limit: u64) -> Result<AuditChanges, StoreError> {
        // Read first: every entry that the head counts is visible afterwards.
        let head = self.audit_head().await?;
        if head == *after {
            return Ok(AuditChanges { records: Vec::new(), up_to: head, is_rewound: false });
        }
        let is_rewound = head.seq <= after.seq || !self.has_entry(after).await?;
        let seq = if is_rewound { head.seq.saturating_sub_unsigned(limit) } else { after.seq };
        let rows = audit_entry::Entity::find()
            .filter(audit_entry::Column::Seq.gt(seq))
            .filter(audit_entry::Column::Seq.lte(head.seq))
            .filter(audit_entry::Column::Action.is_in(actions.iter().copied()))
            .order_by_asc(audit_entry::Column::Seq)
            .limit(limit)
            .all(&self.read)
            .await?;
        let is_all = (rows.len() as u64) < limit;
        let last = rows.last().filter(|_| !is_all);
        let up_to = last.map_or(head, |last| Head { seq: last.seq, hash: last.hash.clone() });
        Ok(AuditChanges { records: rows.into_iter().map(Record::from).collect(), up_to, is_rewound })
    }

    /// Whether the log contains an entry that was its last one.
    async fn has_entry(&self, last: &Head) -> Result<bool, StoreError> {
        let hash = audit_entry::Entity::find_by_id(last.seq)
            .select_only()
            .column(audit_entry::Column::Hash)
            .into_tuple::<Vec<u8>>()
            .one(&self.read)
            .await?;
        // Before the first entry there is none.
        Ok(last.seq == 0 || hash.is_some_and(|hash| hash == last.hash))
    }

    /// The end of the log, as the log records it.
    pub async fn audit_head(&self) -> Result<Head, StoreError> {
        let head = audit_head::Entity::find_by_id(HEAD).one(&self.read).await?.ok_or_else(no_head)?;
        Ok(Head { seq: head.seq, hash: head.hash })
    }
}

/// Writes an entry as the last statement of a transaction.
pub(super) async fn record_in(transaction: &impl ConnectionTrait, entry: Entry) -> Result<(), StoreError> {
    let place = advance(transaction, &entry).await?;
    insert(transaction, entry, place).await
}

/// Writes entries in this order, as the last statements of a transaction.
pub(super) async fn record_all_in(transaction: &impl ConnectionTrait, entries: Vec<Entry>) -> Result<(), StoreError> {
    // For a single one the head's statement looks its server up, too.
    if entries.len() < 2 {
        for entry in entries {
            record_in(transaction, entry).await?;
        }
        return Ok(());
    }
    let Head { mut seq, hash: mut previous } = advance_by(transaction, entries.len()).await?;
    let servers = ConcernedServers::of(transaction, &entries).await?;
    let mut entries = entries.into_iter().peekable();
    while entries.peek().is_some() {
        let mut rows = Vec::with_capacity(ENTRIES_AT_ONCE);
        for entry in entries.by_ref().take(ENTRIES_AT_ONCE) {
            seq += 1;
            let (server_name, agent) = servers.of_entry(&entry);
            let record = with_demands(entry, agent).into_record(seq, Timestamp::now(), server_name, &previous);
            previous.clone_from(&record.hash);
            rows.push(audit_entry::Model::from(record).into_active_model().reset_all());
        }
        audit_entry::Entity::insert_many(rows).exec_without_returning(transaction).await?;
    }
    Ok(())
}

/// Writes an entry at the position that [`advance`] gave it, as the last statement of the same transaction.
pub(super) async fn insert(
    transaction: &impl ConnectionTrait,
    entry: Entry,
    place: ChainPosition,
) -> Result<(), StoreError> {
    let entry = with_demands(entry, place.agent.as_deref());
    let record = entry.into_record(place.seq, Timestamp::now(), place.server_name, &place.previous);
    let row = audit_entry::Model::from(record).into_active_model().reset_all();
    audit_entry::Entity::insert(row).exec_without_returning(transaction).await?;
    Ok(())
}

/// The position of the next entry.
pub(super) struct ChainPosition {
    seq: i64,
    /// The hash of the previous entry.
    previous: Vec<u8>,
    /// The name of the server that the entry concerns.
    server_name: Option<String>,
    /// What its agent reported, if that may ask for signatures and the entry is an order.
    agent: Option<String>,
}

/// Increments the head. On PostgreSQL a second transaction waits here until the first one ends, and then sees the head that it
/// left.
pub(super) async fn advance(transaction: &impl ConnectionTrait, entry: &Entry) -> Result<ChainPosition, StoreError> {
    let of_server = |column: server::Column| {
        let its = server::Column::Id.eq(entry.server_id.unwrap_or_default());
        Query::select().column(column).from(server::Entity).and_where(its).to_owned()
    };
    let mut returned = vec![
        Expr::col(audit_head::Column::Seq),
        Expr::col(audit_head::Column::Hash),
        Expr::SubQuery(None, Box::new(of_server(server::Column::Name).into())),
    ];
    let is_order = entry.signed_capability().is_some();
    if is_order {
        let mut agent = of_server(server::Column::Agent);
        // Most agents ask for no signatures, and what they report is not read then.
        agent.and_where(server::Column::Agent.contains("_signed"));
        returned.push(Expr::SubQuery(None, Box::new(agent.into())));
    }
    let advance = Query::update()
        .table(audit_head::Entity)
        .value(audit_head::Column::Seq, Expr::col(audit_head::Column::Seq).add(1))
        .and_where(audit_head::Column::Id.eq(HEAD))
        .returning(Query::returning().exprs(returned))
        .to_owned();
    let head = transaction.query_one(&advance).await?.ok_or_else(no_head)?;
    Ok(ChainPosition {
        seq: head.try_get_by_index(0)?,
        previous: head.try_get_by_index(1)?,
        server_name: head.try_get_by_index(2)?,
        agent: if is_order { head.try_get_by_index(3)? } else { None },
    })
}

/// Moves the head on by this many entries, and returns the one that it was. See [`advance`].
async fn advance_by(transaction: &impl ConnectionTrait, count: usize) -> Result<Head, StoreError> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let advance = Query::update()
        .table(audit_head::Entity)
        .value(audit_head::Column::Seq, Expr::col(audit_head::Column::Seq).add(count))
        .and_where(audit_head::Column::Id.eq(HEAD))
        .returning(Query::returning().columns([audit_head::Column::Seq, audit_head::Column::Hash]))
        .to_owned();
    let head = transaction.query_one(&advance).await?.ok_or_else(no_head)?;
    let last: i64 = head.try_get_by_index(0)?;
    Ok(Head { seq: last.saturating_sub(count), hash: head.try_get_by_index(1)? })
}

/// What the log says of the servers that some entries concern.
#[derive(Default)]
struct ConcernedServers {
    names: HashMap<Uuid, String>,
    /// What agents reported, where that may ask for signatures.
    agents: HashMap<Uuid, String>,
}

impl ConcernedServers {
    async fn of(transaction: &impl ConnectionTrait, entries: &[Entry]) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let concerned: HashSet<Uuid> = entries.iter().filter_map(|entry| entry.server_id).collect();
        let orders = entries.iter().filter(|entry| entry.signed_capability().is_some());
        let ordered: HashSet<Uuid> = orders.filter_map(|entry| entry.server_id).collect();
        for some in Vec::from_iter(concerned).chunks(ROWS_AT_ONCE) {
            let its = server::Entity::find().filter(server::Column::Id.is_in(some.iter().copied()));
            let names = its.select_only().columns([server::Column::Id, server::Column::Name]);
            found.names.extend(names.into_tuple::<(Uuid, String)>().all(transaction).await?);
        }
        for some in Vec::from_iter(ordered).chunks(ROWS_AT_ONCE) {
            let its = server::Entity::find().filter(server::Column::Id.is_in(some.iter().copied()));
            // As for a single entry.
            let asking = its.filter(server::Column::Agent.contains("_signed"));
            let agents = asking.select_only().columns([server::Column::Id, server::Column::Agent]);
            found.agents.extend(agents.into_tuple::<(Uuid, String)>().all(transaction).await?);
        }
        Ok(found)
    }

    /// Returns the name of the entry's server, and what its agent reported.
    fn of_entry(&self, entry: &Entry) -> (Option<String>, Option<&str>) {
        let Some(server_id) = entry.server_id else { return (None, None) };
        (self.names.get(&server_id).cloned(), self.agents.get(&server_id).map(String::as_str))
    }
}

/// Notes in an order that the server asks for signatures of it, and what it is called by those who sign: so one without signatures,
/// or with those for another server, shows later.
fn with_demands(entry: Entry, agent: Option<&str>) -> Entry {
    let info = agent.and_then(|text| serde_json::from_str::<AgentInfo>(text).ok());
    let Some((info, capability)) = info.zip(entry.signed_capability()) else { return entry };
    if !info.capabilities.iter().any(|name| name == capability) {
        return entry;
    }
    // Who the signers were, the file of signers says at the time of the check.
    let asked = info.signing.map(|signing| json!({ "name": signing.name, "approvals": signing.approvals }));
    entry.also("signing", asked.unwrap_or_else(|| json!({})))
}

/// The audit detail of a field's change; none where the field stays.
pub(super) fn changed<T: PartialEq + Serialize>(old: &T, new: Option<&T>) -> Option<Value> {
    new.filter(|new| *new != old).map(|new| json!({ "from": old, "to": new }))
}

/// The differences between the fields of two objects.
pub(super) fn differences(old: &impl Serialize, new: &impl Serialize) -> Value {
    let (old, new) = (json!(old), json!(new));
    let fields = new.as_object().into_iter().flatten();
    let named = fields.filter_map(|(name, new)| {
        let old = old.get(name).unwrap_or(&Value::Null);
        Some((name.clone(), changed(old, Some(new))?))
    });
    named.collect::<serde_json::Map<_, _>>().into()
}

fn no_head() -> DbErr {
    DbErr::RecordNotFound("the head of the audit log".to_owned())
}

fn condition(filter: AuditFilter) -> Condition {
    use audit_entry::Column;
    let action = filter.action.map(|action| {
        let pattern = format!("{}%", escape_like(&action));
        Column::Action.like(LikeExpr::new(pattern).escape('\\'))
    });
    Condition::all()
        .add_option(filter.owner_id.map(|id| Column::OwnerId.eq(id)))
        .add_option(filter.server_id.map(|id| Column::ServerId.eq(id)))
        .add_option(action)
        .add_option(filter.since.map(|since| Column::At.gte(Millis::from(since))))
        .add_option(filter.until.map(|until| Column::At.lt(Millis::from(until))))
}

impl From<Record> for audit_entry::Model {
    fn from(record: Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at.into(),
            owner_id: record.owner_id,
            user_id: record.user_id,
            username: record.username,
            login_id: record.login_id,
            address: record.address,
            action: record.action,
            server_id: record.server_id,
            server_name: record.server_name,
            target: record.target,
            outcome: record.outcome,
            detail: record.detail,
            hash: record.hash,
        }
    }
}

impl From<audit_entry::Model> for Record {
    fn from(row: audit_entry::Model) -> Self {
        Self {
            seq: row.seq,
            at: row.at.into(),
            owner_id: row.owner_id,
            user_id: row.user_id,
            username: row.username,
            login_id: row.login_id,
            address: row.address,
            action: row.action,
            server_id: row.server_id,
            server_name: row.server_name,
            target: row.target,
            outcome: row.outcome,
            detail: row.detail,
            hash: row.hash,
        }
    }
}
