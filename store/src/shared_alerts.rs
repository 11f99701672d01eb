//! Lists of alerts for somebody who sees servers of others ([`super::visibility`]).
//!
//! What they see falls into few parts: owners, the servers of an owner with some tags, and single servers. The counts of alerts
//! say how many each part has, so a part without alerts is not searched. The rest are joined by UNION ALL of the first rows of
//! each. A part of an owner's servers is found in one of two ways: few alerts by their servers, many by the owner's index, which
//! is read in the order of the list.

use entity::{alert, alert_count, server};
use sea_orm::sea_query::{Alias, Expr, ExprTrait, Order, Query, SelectStatement, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait,
};
use uuid::Uuid;

use super::alert_filter::{AlertFilter, RESOLVED};
use super::alert_lists::AlertCount;
use super::alert_span::Ids;
use super::alert_totals::Term;
use super::visibility::{SeenPart, united};
use super::{Alert, Page, PageRequest, Store, StoreError, Visibility};

/// Up to this many alerts of a part are found by their servers and sorted. More are read in order by their owner's index: with
/// so many, a page of them is soon complete.
const MAX_SORTED: u64 = 5_000;

/// Parts of one statement. SQLite joins at most 500.
const MAX_SOURCES: usize = 400;

/// The alerts of one kind in one part.
#[derive(FromQueryResult)]
struct Count {
    part: i64,
    metric_type: String,
    severity: String,
    status: String,
    alerts: i64,
}

/// Where a list finds alerts: a part, or one kind of alerts in it.
struct Source<'a> {
    part: &'a SeenPart,
    /// The metric and severity; none for all.
    kind: Option<(String, String)>,
    /// How many alerts it has that the filter allows, ignoring status and times.
    alerts: u64,
    /// How many of them have the status of the filter.
    matching: u64,
}

/// A range of a list: the alerts that fulfil one of these conditions, which are disjoint.
struct Segment {
    conditions: Vec<Condition>,
    total: u64,
}

impl Store {
    /// Lists the alerts of all these servers, newest first.
    pub(super) async fn list_shared_alerts(
        &self,
        visible: &Visibility,
        filter: &AlertFilter,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        let parts = visible.parts();
        let counts = self.counts_in(&parts, filter).await?;
        let sources = sources(&parts, &counts, filter);
        let segments = match filter.span() {
            None => vec![whole(&sources, filter)],
            Some(span) => self.timed(&sources, filter, span.reach).await?,
        };
        let (mut items, mut skipped) = (Vec::new(), page.offset);
        let total = segments.iter().map(|segment| segment.total).sum();
        for segment in segments {
            let limit = Ord::min(page.limit.saturating_sub(items.len() as u64), segment.total.saturating_sub(skipped));
            if limit > 0 {
                let page = PageRequest { limit, offset: skipped };
                items.extend(self.newest_among(&segment.conditions, page).await?);
            }
            skipped = skipped.saturating_sub(segment.total);
        }
        Ok(Page { items, total })
    }

    /// How many alerts of each kind and status each part has, ignoring times.
    async fn counts_in(&self, parts: &[SeenPart], filter: &AlertFilter) -> Result<Vec<Count>, StoreError> {
        use alert_count::Column;
        let of = |(place, part): (i64, &SeenPart)| {
            let counted = alert_count::Entity::find().select_only().expr_as(Expr::value(place), "part");
            let counted = counted.columns([Column::MetricType, Column::Severity, Column::Status]);
            let counted = counted.expr_as(Column::Count.sum().cast_as("BIGINT"), "alerts");
            let counted = counted.filter(counted_in(part)).filter(filter.counted_kinds());
            let grouped = counted.group_by(Column::MetricType).group_by(Column::Severity).group_by(Column::Status);
            grouped.into_query()
        };
        let Some(query) = united((0_i64..).zip(parts).map(of)) else { return Ok(Vec::new()) };
        let statement = self.read.get_database_backend().build(&query);
        Ok(Count::find_by_statement(statement).all(&self.read).await?)
    }

    /// The ranges of a list with times: the ids that the times allow, and the exceptions before and after them.
    async fn timed(
        &self,
        sources: &[Source<'_>],
        filter: &AlertFilter,
        reach: Ids,
    ) -> Result<Vec<Segment>, StoreError> {
        let exceptional = migration::exceptional(self.read.get_database_backend());
        let within = |source: &Source<'_>| source.condition(filter).add(reach.condition());
        let (mut newer, mut older) = (Vec::new(), Vec::new());
        for ids in reach.others() {
            let beside = |source: &Source<'_>| {
                let condition = source.condition(filter).add(ids.condition());
                condition.add(Expr::cust(format!("({exceptional})")))
            };
            let conditions: Vec<Condition> = sources.iter().map(beside).collect();
            if ids.before_ms.is_none() { newer.push(conditions) } else { older.push(conditions) }
        }
        newer.push(sources.iter().map(within).collect());
        newer.append(&mut older);
        let mut segments = Vec::with_capacity(newer.len());
        for conditions in newer {
            let terms: Vec<Term> = conditions.iter().cloned().map(Term::Alerts).collect();
            let total = self.totals(&[&terms]).await?.into_iter().sum();
            segments.push(Segment { conditions, total });
        }
        Ok(segments)
    }

    /// A page of the alerts that fulfil one of these conditions, newest first.
    async fn newest_among(&self, conditions: &[Condition], page: PageRequest) -> Result<Vec<Alert>, StoreError> {
        let Some(ids) = newest_ids(conditions, page) else { return Ok(Vec::new()) };
        let statement = self.read.get_database_backend().build(&ids);
        let rows = self.read.query_all_raw(statement).await?;
        let ids = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<Vec<Uuid>, _>>()?;
        let found = alert::Entity::find().filter(alert::Column::Id.is_in(ids)).order_by_desc(alert::Column::Id);
        Ok(found.all(&self.read).await?)
    }

    /// The newest unresolved alerts of all these servers, newest first.
    pub(super) async fn newest_unresolved(&self, visible: &Visibility, most: u64) -> Result<Vec<Alert>, StoreError> {
        let parts = visible.parts();
        let open =
            |part: &SeenPart| walked(part).unwrap_or_else(|| gathered(part)).add(alert::Column::ResolvedAt.is_null());
        let conditions: Vec<Condition> = parts.iter().map(open).collect();
        self.newest_among(&conditions, PageRequest { limit: most, offset: 0 }).await
    }

    /// Counts the alerts of all these servers, as [`Store::count_alerts`].
    pub(super) async fn count_shared_alerts(&self, visible: &Visibility) -> Result<Vec<AlertCount>, StoreError> {
        let parts = visible.parts();
        let Some(query) = united(parts.iter().flat_map(summary_of)) else { return Ok(Vec::new()) };
        let statement = self.read.get_database_backend().build(&query);
        Ok(AlertCount::find_by_statement(statement).all(&self.read).await?)
    }
}

impl Source<'_> {
    /// The condition of its alerts that match the filter.
    fn condition(&self, filter: &AlertFilter) -> Condition {
        use alert::Column;
        let is_sorted = self.alerts <= MAX_SORTED && !filter.is_of_unresolved() && filter.span().is_none();
        let part = match walked(self.part) {
            Some(walked) if !is_sorted => walked,
            _ => gathered(self.part),
        };
        let kind = self.kind.as_ref().map(|(metric_type, severity)| {
            Condition::all().add(Column::MetricType.eq(metric_type)).add(Column::Severity.eq(severity))
        });
        part.add(filter.matching()).add_option(kind)
    }
}

/// The sources that have alerts, each kind by itself where the filter excludes some: the indexes have the alerts of one kind in
/// order.
fn sources<'a>(parts: &'a [SeenPart], counts: &[Count], filter: &AlertFilter) -> Vec<Source<'a>> {
    let of_kinds = by_kind(parts, counts, filter, true);
    if filter.is_selective() && of_kinds.len() <= MAX_SOURCES {
        of_kinds
    } else {
        by_kind(parts, counts, filter, false)
    }
}

fn by_kind<'a>(parts: &'a [SeenPart], counts: &[Count], filter: &AlertFilter, splits: bool) -> Vec<Source<'a>> {
    let mut sources: Vec<(i64, Source<'a>)> = Vec::new();
    for count in counts {
        let Some(part) = usize::try_from(count.part).ok().and_then(|place| parts.get(place)) else { continue };
        let kind = splits.then(|| (count.metric_type.clone(), count.severity.clone()));
        let alerts = u64::try_from(count.alerts).unwrap_or_default();
        let matching = if filter.status.is_none_or(|status| status == count.status) { alerts } else { 0 };
        match sources.iter_mut().find(|(place, source)| *place == count.part && source.kind == kind) {
            Some((_, source)) => {
                source.alerts += alerts;
                source.matching += matching;
            }
            None => sources.push((count.part, Source { part, kind, alerts, matching })),
        }
    }
    sources.into_iter().map(|(_, source)| source).filter(|source| source.matching > 0).collect()
}

/// A list without times: its length follows from the counts.
fn whole(sources: &[Source<'_>], filter: &AlertFilter) -> Segment {
    let conditions = sources.iter().map(|source| source.condition(filter)).collect();
    Segment { conditions, total: sources.iter().map(|source| source.matching).sum() }
}

/// The ids of a page, merged from the newest of each condition.
fn newest_ids(conditions: &[Condition], page: PageRequest) -> Option<SelectStatement> {
    let (id, of_one, of_all) = (Alias::new("id"), Alias::new("of_one"), Alias::new("of_all"));
    let newest_of = |condition: &Condition| {
        let query = alert::Entity::find().select_only().column(alert::Column::Id).filter(condition.clone());
        let query = query.order_by_desc(alert::Column::Id).limit(page.offset.saturating_add(page.limit)).into_query();
        // SQLite takes an order and a limit only in a subquery of its own.
        Query::select().column(id.clone()).from_subquery(query, of_one.clone()).to_owned()
    };
    let ids = united(conditions.iter().map(newest_of))?;
    let mut query = Query::select();
    query.column(id.clone()).from_subquery(ids, of_all).order_by(id, Order::Desc);
    Some(query.limit(page.limit).offset(page.offset).to_owned())
}

/// The counts of a part: unresolved alerts by server, and resolved ones together.
fn summary_of(part: &SeenPart) -> [SelectStatement; 2] {
    use alert_count::Column;
    let counts = |server_id: SimpleExpr| {
        alert_count::Entity::find()
            .select_only()
            .expr_as(server_id, "server_id")
            .columns([Column::Status, Column::Severity])
            .expr_as(Column::Count.sum().cast_as("BIGINT"), "count")
            .filter(counted_in(part))
            .group_by(Column::Status)
            .group_by(Column::Severity)
    };
    let open = counts(Expr::col(Column::ServerId)).filter(Column::Status.ne(RESOLVED)).group_by(Column::ServerId);
    let resolved = counts(Expr::cust("CAST(NULL AS uuid)")).filter(Column::Status.eq(RESOLVED));
    [open.into_query(), resolved.into_query()]
}

fn of_owners(column: impl ColumnTrait, owners: &[Uuid]) -> SimpleExpr {
    match owners {
        [owner_id] => column.eq(*owner_id),
        _ => column.is_in(owners.iter().copied()),
    }
}

/// The condition on the table of alerts that finds them by the index of their servers.
fn gathered(part: &SeenPart) -> Condition {
    match &part.servers {
        None => Condition::all().add(of_owners(alert::Column::OwnerId, &part.owners)),
        Some(servers) => Condition::all().add(alert::Column::ServerId.in_subquery(ids_of(servers))),
    }
}

/// The condition that reads them in order by the index of their owner; none where they have several owners.
fn walked(part: &SeenPart) -> Option<Condition> {
    let [owner_id] = part.owners.as_slice() else { return None };
    let owned = Condition::all().add(alert::Column::OwnerId.eq(*owner_id));
    let Some(servers) = &part.servers else { return Some(owned) };
    let server = server::Entity::find()
        .select_only()
        .expr(Expr::val(1))
        .filter(servers.clone())
        .filter(Expr::col((server::Entity, server::Column::Id)).equals((alert::Entity, alert::Column::ServerId)));
    Some(owned.add(Expr::exists(QueryTrait::into_query(server))))
}

/// The condition on the counts of alerts.
fn counted_in(part: &SeenPart) -> Condition {
    use alert_count::Column;
    let Some(servers) = &part.servers else { return Condition::all().add(of_owners(Column::OwnerId, &part.owners)) };
    if let [owner_id] = part.owners.as_slice() {
        return Condition::all().add(Column::OwnerId.eq(*owner_id)).add(Column::ServerId.in_subquery(ids_of(servers)));
    }
    // The key begins with the owner.
    let both = server::Entity::find().select_only().columns([server::Column::OwnerId, server::Column::Id]);
    let both = QueryTrait::into_query(both.filter(servers.clone()));
    let key = Expr::tuple([Expr::col(Column::OwnerId), Expr::col(Column::ServerId)]);
    Condition::all().add(key.in_subquery(both))
}

fn ids_of(servers: &Condition) -> SelectStatement {
    let ids = server::Entity::find().select_only().column(server::Column::Id).filter(servers.clone());
    QueryTrait::into_query(ids)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sea_orm::{DatabaseBackend, Statement};

    use super::*;
    use crate::{DatabaseSettings, GrantScope, Shares, TokenScope};

    const PAGE: PageRequest = PageRequest { limit: 100, offset: 50 };

    async fn store() -> (Store, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        (Store::open(&url, DatabaseSettings::default()).await.unwrap(), directory)
    }

    /// SQLite's plan for a query.
    async fn plan(store: &Store, mut query: Statement) -> Vec<String> {
        query.sql = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let steps = store.read.query_all_raw(query).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("", "detail").unwrap()).collect()
    }

    fn visible(scopes: &[(u128, GrantScope)]) -> Visibility {
        let scopes = scopes.iter().map(|(owner, scope)| (Uuid::from_u128(*owner), scope));
        Visibility::with(Uuid::nil(), Arc::new(Shares::of(Uuid::nil(), scopes)))
    }

    fn tag(owner: u128) -> (u128, GrantScope) {
        (owner, GrantScope::Tag("db".to_owned()))
    }

    fn server(owner: u128) -> (u128, GrantScope) {
        (owner, GrantScope::Server(Uuid::from_u128(owner)))
    }

    /// Every part has so many alerts of two kinds.
    fn counts(parts: &[SeenPart], alerts: i64) -> Vec<Count> {
        let of = |part: usize, metric_type: &str, severity: &str| Count {
            part: i64::try_from(part).unwrap(),
            metric_type: metric_type.to_owned(),
            severity: severity.to_owned(),
            status: "active".to_owned(),
            alerts,
        };
        (0..parts.len()).flat_map(|part| [of(part, "cpu", "warning"), of(part, "disk", "critical")]).collect()
    }

    fn scans(plan: &[String]) -> Vec<&String> {
        // What was found by an index before.
        let inner = ["SCAN of_one", "SCAN of_all", "SCAN CONSTANT ROW"];
        plan.iter().filter(|step| step.starts_with("SCAN") && !inner.contains(&step.as_str())).collect()
    }

    #[tokio::test]
    async fn no_list_or_count_scans_a_table_whatever_is_shared() {
        let (store, _directory) = store().await;
        let some = vec![(1, GrantScope::All), tag(2), server(2), tag(3), server(4)];
        let thousand: Vec<(u128, GrantScope)> = (1..=400)
            .map(tag)
            .chain((401..=800).map(server))
            .chain((801..=1_000).map(|id| (id, GrantScope::All)))
            .collect();
        let few = [vec![], vec![(1, GrantScope::All)], vec![tag(1)], vec![server(1)], some];
        let within = [TokenScope::All, TokenScope::Tag("web".to_owned()), TokenScope::ServerIds(vec![Uuid::nil()])];
        let few = few.iter().flat_map(|scopes| within.iter().map(move |within| (scopes.clone(), within)));
        for (scopes, within) in few.chain([(thousand, &TokenScope::All)]) {
            let parts = visible(&scopes).within(within).parts();
            assert!(parts.len() <= 33, "{}", parts.len());
            for filter in [AlertFilter::default(), AlertFilter { severity: Some("critical"), ..AlertFilter::default() }]
            {
                for alerts in [1, 1_000_000] {
                    let counts = counts(&parts, alerts);
                    let whole = whole(&sources(&parts, &counts, &filter), &filter);
                    let query = DatabaseBackend::Sqlite.build(&newest_ids(&whole.conditions, PAGE).unwrap());
                    let plan = plan(&store, query).await;
                    assert_eq!(scans(&plan), Vec::<&String>::new(), "{scopes:?} {filter:?} {alerts}: {plan:#?}");
                }
            }
            let summary = united(parts.iter().flat_map(summary_of)).unwrap();
            let plan = plan(&store, DatabaseBackend::Sqlite.build(&summary)).await;
            assert_eq!(scans(&plan), Vec::<&String>::new(), "{plan:#?}");
            assert!(plan.iter().any(|step| step.contains("alert_counts") && step.contains("owner_id=?")), "{plan:#?}");
        }
    }

    #[tokio::test]
    async fn many_alerts_of_a_tag_are_read_in_order_and_few_by_their_servers() {
        let (store, _directory) = store().await;
        let parts = visible(&[tag(1)]).parts();
        let tagged = &parts[1..];
        let read = async |alerts: i64| {
            let counts = counts(tagged, alerts);
            let whole = whole(&sources(tagged, &counts, &AlertFilter::default()), &AlertFilter::default());
            plan(&store, DatabaseBackend::Sqlite.build(&newest_ids(&whole.conditions, PAGE).unwrap())).await
        };

        let (few, many) = (read(1).await, read(1_000_000).await);

        assert!(many.iter().any(|step| step.contains("alerts_by_owner (owner_id=?)")), "{many:#?}");
        assert!(few.iter().any(|step| step.contains("(server_id=?")), "{few:#?}");
        assert!(!many.iter().any(|step| step.contains("TEMP B-TREE")), "nothing is sorted: {many:#?}");
    }
}
