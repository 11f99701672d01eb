//! Queries of alerts: lists, timelines and counts.

use std::collections::BTreeSet;

use entity::{alert, alert_count, alert_event};
use sea_orm::sea_query::{Alias, Expr, Order, Query, SelectStatement, SimpleExpr, UnionType};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Select,
};
use uuid::Uuid;

use super::alert_filter::{AlertFilter, RESOLVED};
use super::alert_span::{Ids, Span};
use super::alert_totals::Term;
use super::{Alert, AlertEvent, Page, PageRequest, Store, StoreError, Visibility};

/// How many alerts of a server have this status and severity.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct AlertCount {
    /// None for resolved alerts, which are counted over all servers.
    pub server_id: Option<Uuid>,
    /// `active`, `acknowledged` or `resolved`.
    pub status: String,
    /// The severity.
    pub severity: String,
    /// The number of alerts.
    pub count: i64,
}

/// What an alert is about. The indexes of alerts begin with both columns, so that the alerts of one kind are in order.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
struct Kind {
    metric_type: String,
    severity: String,
    alerts: i64,
}

/// A range of a list, in the order of ids.
struct Part {
    condition: Condition,
    /// The kinds to search one by one; none where all kinds are wanted.
    kinds: Vec<Kind>,
    total: u64,
}

/// The parameters for reading a count or a range of a list.
struct ListQuery<'a> {
    owner_id: Uuid,
    filter: &'a AlertFilter,
    /// All kinds of alerts that the filter allows, ignoring status and times.
    kinds: Vec<Kind>,
}

impl Store {
    /// Lists the alerts of visible servers, newest first.
    pub async fn list_alerts(
        &self,
        visible: &Visibility,
        filter: AlertFilter,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        match visible.sole_owner() {
            Some(owner_id) => self.list_alerts_of(owner_id, filter, page).await,
            None => self.list_shared_alerts(visible, &filter, page).await,
        }
    }

    async fn list_alerts_of(
        &self,
        owner_id: Uuid,
        filter: AlertFilter,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        let whatever_status = AlertFilter { status: None, ..filter.clone() };
        let kinds = self.kinds(owner_id, &whatever_status).await?;
        let wanted = ListQuery { owner_id, filter: &filter, kinds };
        let parts = match filter.span() {
            _ if wanted.kinds.is_empty() => Vec::new(),
            _ if filter.is_of_unresolved() => vec![self.unresolved_part(&wanted).await?],
            None => {
                let total = number_of(&self.kinds(owner_id, &filter).await?);
                vec![Part { total, ..wanted.part(Condition::all()) }]
            }
            Some(span) => self.parts(&wanted, span).await?,
        };
        let (mut items, mut skipped) = (Vec::new(), page.offset);
        let total = parts.iter().map(|part| part.total).sum();
        for part in parts {
            // Never asks for more rows than the part has: the database would search everything older for them.
            let limit = Ord::min(page.limit.saturating_sub(items.len() as u64), part.total.saturating_sub(skipped));
            if limit > 0 {
                items.extend(self.newest(&part, PageRequest { limit, offset: skipped }).await?);
            }
            skipped = skipped.saturating_sub(part.total);
        }
        Ok(Page { items, total })
    }

    /// Unresolved alerts are few, whatever their age.
    async fn unresolved_part(&self, wanted: &ListQuery<'_>) -> Result<Part, StoreError> {
        let condition = wanted.exceptional(&self.read, wanted.condition());
        let total = self.totals(&[&[Term::Alerts(condition.clone())]]).await?.into_iter().sum();
        Ok(Part { condition, kinds: Vec::new(), total })
    }

    /// A list with times: the range of ids that the times allow, and the exceptions before and after it.
    async fn parts(&self, wanted: &ListQuery<'_>, span: Span) -> Result<Vec<Part>, StoreError> {
        let within = (wanted.part(span.reach.condition()), self.within(wanted, span));
        let (mut newer, mut older) = (Vec::new(), Vec::new());
        for ids in span.reach.others() {
            let condition = wanted.exceptional(&self.read, wanted.condition().add(ids.condition()));
            let terms = vec![Term::Alerts(condition.clone())];
            let part = (Part { condition, kinds: Vec::new(), total: 0 }, terms);
            if ids.before_ms.is_none() { newer.push(part) } else { older.push(part) }
        }
        newer.push(within);
        newer.append(&mut older);
        let terms: Vec<&[Term]> = newer.iter().map(|(_, terms)| terms.as_slice()).collect();
        let totals = self.totals(&terms).await?;
        Ok(newer.into_iter().zip(totals).map(|((part, _), total)| Part { total, ..part }).collect())
    }

    /// How many alerts the range holds. Within its core only the exceptions are read.
    fn within(&self, wanted: &ListQuery<'_>, span: Span) -> Vec<Term> {
        let matching = |ids: Ids| Term::Alerts(wanted.of_kinds(wanted.condition()).add(ids.condition()));
        let Some(core) = span.core else { return vec![matching(span.reach)] };
        let any = wanted.filter.kinds(wanted.owner_id).add(core.condition());
        let found = wanted.condition().add(core.condition());
        let mut terms = wanted.in_core(core);
        terms.push(Term::Without(wanted.exceptional(&self.read, any)));
        terms.push(Term::Alerts(wanted.exceptional(&self.read, found)));
        terms.extend(span.edges().map(matching));
        terms
    }

    async fn kinds(&self, owner_id: Uuid, filter: &AlertFilter) -> Result<Vec<Kind>, StoreError> {
        Ok(kinds(filter, owner_id).into_model().all(&self.read).await?)
    }

    /// Reads a page of a part.
    async fn newest(&self, part: &Part, page: PageRequest) -> Result<Vec<Alert>, StoreError> {
        use alert::Column;
        let in_order = |condition: Condition| alert::Entity::find().filter(condition).order_by_desc(Column::Id);
        let Some(ids) = newest_ids(part, page) else {
            let query = in_order(part.condition.clone());
            return Ok(query.limit(page.limit).offset(page.offset).all(&self.read).await?);
        };
        let statement = self.read.get_database_backend().build(&ids);
        let rows = self.read.query_all_raw(statement).await?;
        let ids = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<Vec<Uuid>, _>>()?;
        Ok(in_order(Condition::all().add(Column::Id.is_in(ids))).all(&self.read).await?)
    }

    /// The newest unresolved alerts of visible servers, oldest first.
    pub async fn unresolved_alerts(&self, visible: &Visibility, most: u64) -> Result<Vec<Alert>, StoreError> {
        let mut alerts = match visible.sole_owner() {
            Some(owner_id) => {
                alert::Entity::find()
                    .filter(alert::Column::OwnerId.eq(owner_id))
                    .filter(alert::Column::ResolvedAt.is_null())
                    .order_by_desc(alert::Column::Id)
                    .limit(most)
                    .all(&self.read)
                    .await?
            }
            None => self.newest_unresolved(visible, most).await?,
        };
        alerts.reverse();
        Ok(alerts)
    }

    /// The timeline of an alert, in order.
    pub async fn alert_timeline(&self, alert_id: Uuid) -> Result<Vec<AlertEvent>, StoreError> {
        let events = alert_event::Entity::find()
            .filter(alert_event::Column::AlertId.eq(alert_id))
            .order_by_asc(alert_event::Column::Id);
        Ok(events.all(&self.read).await?)
    }

    /// Counts the alerts of visible servers that nobody has acknowledged and that are not over.
    pub async fn count_active_alerts(&self, visible: &Visibility) -> Result<u64, StoreError> {
        let counts = self.count_alerts(visible).await?;
        let active: i64 = counts.iter().filter(|count| count.status == "active").map(|count| count.count).sum();
        Ok(u64::try_from(active).unwrap_or_default())
    }

    /// Counts the alerts of visible servers by status and severity, and unresolved ones also by server. It is one statement, so
    /// that the counts are consistent. The same status and severity may come several times.
    pub async fn count_alerts(&self, visible: &Visibility) -> Result<Vec<AlertCount>, StoreError> {
        use alert_count::Column;
        let Some(owner_id) = visible.sole_owner() else { return self.count_shared_alerts(visible).await };
        let counts = |server_id: SimpleExpr| {
            alert_count::Entity::find()
                .select_only()
                .expr_as(server_id, "server_id")
                .columns([Column::Status, Column::Severity])
                // PostgreSQL's sum of integers is not an integer.
                .expr_as(Column::Count.sum().cast_as("BIGINT"), "count")
                .filter(Column::OwnerId.eq(owner_id))
                .group_by(Column::Status)
                .group_by(Column::Severity)
        };
        let open = counts(Expr::col(Column::ServerId)).filter(Column::Status.ne(RESOLVED)).group_by(Column::ServerId);
        let resolved = counts(Expr::cust("CAST(NULL AS uuid)")).filter(Column::Status.eq(RESOLVED));
        let mut all = open.into_query();
        all.union(UnionType::All, resolved.into_query());
        let statement = self.read.get_database_backend().build(&all);
        Ok(AlertCount::find_by_statement(statement).all(&self.read).await?)
    }
}

impl ListQuery<'_> {
    fn condition(&self) -> Condition {
        self.filter.condition(self.owner_id)
    }

    /// A range of the list whose length is not known yet.
    fn part(&self, stretch: Condition) -> Part {
        let kinds = if self.filter.is_selective() { self.kinds.clone() } else { Vec::new() };
        Part { condition: self.condition().add(stretch), kinds, total: 0 }
    }

    /// Repeats the filter's kinds in the terms of the indexes, so that the database uses them.
    fn of_kinds(&self, condition: Condition) -> Condition {
        use alert::Column;
        if !self.filter.is_selective() {
            return condition;
        }
        let metric_types: BTreeSet<&str> = self.kinds.iter().map(|kind| kind.metric_type.as_str()).collect();
        let severities: BTreeSet<&str> = self.kinds.iter().map(|kind| kind.severity.as_str()).collect();
        condition.add(Column::MetricType.is_in(metric_types)).add(Column::Severity.is_in(severities))
    }

    /// How many alerts have ids in the core, whatever their status. Whole buckets are already counted.
    fn in_core(&self, core: Ids) -> Vec<Term> {
        let any = |ids: Ids| Term::Alerts(self.of_kinds(self.filter.kinds(self.owner_id)).add(ids.condition()));
        let counted = core.buckets().and_then(|whole| Some((whole, self.filter.counted_in(self.owner_id, whole)?)));
        let Some((whole, counted)) = counted else { return vec![any(core)] };
        core.beside(whole).map(any).chain([Term::Buckets(counted)]).collect()
    }

    /// Restricts a condition to the exceptions.
    fn exceptional(&self, connection: &impl ConnectionTrait, condition: Condition) -> Condition {
        let exceptional = migration::exceptional(connection.get_database_backend());
        condition.add(Expr::cust(format!("({exceptional})")))
    }
}

/// The kinds of alerts that a filter allows, ignoring times, and how many there are of each.
fn kinds(filter: &AlertFilter, owner_id: Uuid) -> Select<alert_count::Entity> {
    use alert_count::Column;
    let counted = filter.counted(owner_id).select_only().columns([Column::MetricType, Column::Severity]);
    // PostgreSQL's sum of integers is not an integer.
    let counted = counted.expr_as(Column::Count.sum().cast_as("BIGINT"), "alerts");
    counted.group_by(Column::MetricType).group_by(Column::Severity)
}

fn number_of(kinds: &[Kind]) -> u64 {
    kinds.iter().map(|kind| kind.alerts.unsigned_abs()).sum()
}

/// The ids of a page of a part, merged from the newest of each kind. None where all kinds are wanted, which are in order
/// already.
fn newest_ids(part: &Part, page: PageRequest) -> Option<SelectStatement> {
    use alert::Column;
    let (id, of_one, of_all) = (Alias::new("id"), Alias::new("of_one"), Alias::new("of_all"));
    let newest_of = |kind: &Kind| {
        let query = alert::Entity::find().select_only().column(Column::Id).filter(part.condition.clone());
        let query = query.filter(Column::MetricType.eq(&kind.metric_type)).filter(Column::Severity.eq(&kind.severity));
        let query = query.order_by_desc(Column::Id).limit(page.offset.saturating_add(page.limit)).into_query();
        Query::select().column(id.clone()).from_subquery(query, of_one.clone()).to_owned()
    };
    let (first, others) = part.kinds.split_first()?;
    let mut ids = newest_of(first);
    for kind in others {
        ids.union(UnionType::All, newest_of(kind));
    }
    let mut query = Query::select();
    query.column(id.clone()).from_subquery(ids, of_all).order_by(id, Order::Desc);
    Some(query.limit(page.limit).offset(page.offset).to_owned())
}

#[cfg(test)]
mod tests {
    use sea_orm::{DatabaseBackend, Statement};
    use signalbox_protocol::Timestamp;

    use super::*;
    use crate::DatabaseSettings;
    use crate::alert_totals::query;

    const PAGE: PageRequest = PageRequest { limit: 100, offset: 50 };

    /// SQLite's plan for a query.
    async fn plan(store: &Store, mut query: Statement) -> String {
        query.sql = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let steps = store.read.query_all_raw(query).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("", "detail").unwrap() + "\n").collect()
    }

    async fn store() -> (Store, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        (Store::open(&url, DatabaseSettings::default()).await.unwrap(), directory)
    }

    fn wanted(filter: &AlertFilter) -> ListQuery<'_> {
        let kind = |metric_type: &str, severity: &str| Kind {
            metric_type: metric_type.to_owned(),
            severity: severity.to_owned(),
            alerts: 1_000,
        };
        ListQuery { owner_id: Uuid::nil(), filter, kinds: vec![kind("cpu", "warning"), kind("disk", "critical")] }
    }

    /// Filters, and the index that each is to use.
    fn filters() -> [(AlertFilter, &'static str); 6] {
        let (all, id) = (AlertFilter::default(), Some(Uuid::nil()));
        let by_kind = "alerts_by_kind (owner_id=? AND metric_type=? AND severity=?";
        [
            (all.clone(), "alerts_by_owner (owner_id=?"),
            (AlertFilter { status: Some("resolved"), ..all.clone() }, "alerts_by_owner (owner_id=?"),
            (AlertFilter { severity: Some("critical"), ..all.clone() }, by_kind),
            (AlertFilter { metric_type: Some("cpu"), status: Some("resolved"), ..all.clone() }, by_kind),
            (
                AlertFilter { server_id: id, severity: Some("info"), ..all.clone() },
                "alerts_by_server_and_kind (server_id=? AND owner_id=? AND metric_type=? AND severity=?",
            ),
            (
                AlertFilter { threshold_id: id, ..all.clone() },
                "alerts_by_threshold_and_kind (threshold_id=? AND owner_id=? AND metric_type=? AND severity=?",
            ),
        ]
    }

    /// The query of a page.
    fn page(part: &Part) -> Statement {
        let ids = newest_ids(part, PAGE).map(|ids| DatabaseBackend::Sqlite.build(&ids));
        let in_order = alert::Entity::find().filter(part.condition.clone()).order_by_desc(alert::Column::Id);
        ids.unwrap_or_else(|| in_order.limit(PAGE.limit).build(DatabaseBackend::Sqlite))
    }

    #[tokio::test]
    async fn lists_are_read_in_their_order() {
        let (store, _directory) = store().await;
        for (filter, index) in filters() {
            let timed = AlertFilter {
                since: Some(Timestamp::from_millis(1)),
                until: Some(Timestamp::from_millis(99_000_000)),
                ..filter.clone()
            };
            let reach = timed.span().unwrap().reach;

            let plain = plan(&store, page(&wanted(&filter).part(Condition::all()))).await;
            let timely = plan(&store, page(&wanted(&timed).part(reach.condition()))).await;

            let searches = if filter.is_selective() { 2 } else { 1 };
            assert_eq!(plain.matches(&format!("{index})")).count(), searches, "{filter:?}: {plain}");
            let range = format!("{index} AND id>? AND id<?)");
            assert_eq!(timely.matches(&range).count(), searches, "{filter:?}: {timely}");
            // Only the results of several kinds are sorted.
            let is_sorted = plain.contains("TEMP B-TREE") || timely.contains("TEMP B-TREE");
            assert_eq!(is_sorted, filter.is_selective(), "{filter:?}: {plain}{timely}");
        }
    }

    /// The query of a count.
    fn number(term: Term) -> Statement {
        DatabaseBackend::Sqlite.build(&query(&[&[term]]).unwrap())
    }

    #[tokio::test]
    async fn counts_of_a_time_range_read_no_alert() {
        let (store, _directory) = store().await;
        let ids = Ids { from_ms: Some(1), before_ms: Some(2) };
        for (filter, index) in filters() {
            let wanted = wanted(&filter);
            let any = wanted.filter.kinds(wanted.owner_id).add(ids.condition());
            let found = wanted.condition().add(ids.condition());

            let core = plan(&store, number(Term::Alerts(wanted.of_kinds(any)))).await;
            let few = plan(&store, number(Term::Alerts(wanted.exceptional(&store.read, found)))).await;

            assert!(core.contains(&format!("COVERING INDEX {index} AND id>? AND id<?)")), "{filter:?}: {core}");
            let exceptional = "COVERING INDEX alerts_exceptional (owner_id=? AND id>? AND id<?)";
            assert!(few.contains(exceptional), "{filter:?}: {few}");
        }
    }

    #[tokio::test]
    async fn whole_buckets_are_not_counted_again() {
        let (store, _directory) = store().await;
        let core = Ids { from_ms: Some(1), before_ms: Some(99_000_000_000) };
        for (filter, index) in filters() {
            let wanted = wanted(&filter);

            let mut terms = wanted.in_core(core);

            let plan = plan(&store, number(terms.pop().unwrap())).await;
            let counted = "SEARCH alert_buckets USING PRIMARY KEY (owner_id=? AND scope=? AND scope_id=? AND bucket>? AND bucket<?)";
            assert!(plan.contains(counted), "{filter:?}: {plan}");
            assert_eq!(terms.len(), 2, "{index}");
        }
    }

    #[tokio::test]
    async fn unresolved_alerts_are_found_among_few() {
        let (store, _directory) = store().await;
        for status in ["active", "acknowledged"] {
            for (filter, _) in filters() {
                let filter = AlertFilter { status: Some(status), ..filter };
                let wanted = wanted(&filter);
                let condition = wanted.exceptional(&store.read, wanted.condition());

                let plan = plan(&store, number(Term::Alerts(condition))).await;

                let few = ["alerts_unresolved (owner_id=?)", "alerts_exceptional (owner_id=?)"];
                assert!(few.iter().any(|index| plan.contains(index)), "{filter:?}: {plan}");
            }
        }
    }

    #[tokio::test]
    async fn counts_without_times_read_no_alert() {
        let (store, _directory) = store().await;

        let plan = plan(&store, kinds(&AlertFilter::default(), Uuid::nil()).build(DatabaseBackend::Sqlite)).await;

        assert!(plan.contains("alert_counts") && plan.contains("(owner_id=?)"), "{plan}");
    }
}
