//! Lists of the servers that somebody sees ([`super::visibility`]).

use entity::{Millis, server};
use sea_orm::sea_query::{Expr, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, Order, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select,
};
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::commands::ROWS_AT_ONCE;
use super::server_filter::ServerFilter;
use super::servers::{recorded_status, tags_of};
use super::visibility::{Branches, united};
use super::{Page, PageRequest, Server, Store, StoreError, Visibility};

/// Servers with a tag that are collected to find a page of them. For more, the servers of the owner are read in the order of
/// their names until the page is full, which is soon if many have the tag.
const FEW_TAGGED: u64 = 1_000;

/// What may change of a server, for a reader that watches all that somebody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisibleServer {
    /// The server.
    pub id: Uuid,
    /// The owner.
    pub owner_id: Uuid,
    /// The status, as the database knows it.
    pub status: ServerStatus,
    /// When the service last heard from its agent; none if never.
    pub last_seen_at: Option<Timestamp>,
    /// When a user last changed it.
    pub updated_at: Timestamp,
}

impl Store {
    /// The ids of the visible servers with this tag, ordered by name.
    pub async fn servers_with_tag(&self, visible: &Visibility, tag: &str) -> Result<Vec<Uuid>, StoreError> {
        self.servers_that(visible, ServerFilter { tag: Some(tag.to_owned()), ..ServerFilter::default() }).await
    }

    /// The ids of all visible servers, ordered by name.
    pub async fn all_servers(&self, visible: &Visibility) -> Result<Vec<Uuid>, StoreError> {
        self.servers_that(visible, ServerFilter::default()).await
    }

    async fn servers_that(&self, visible: &Visibility, filter: ServerFilter) -> Result<Vec<Uuid>, StoreError> {
        let ids = server::Entity::find()
            .select_only()
            .column(server::Column::Id)
            .filter(self.branches(visible).await?.condition())
            .filter(filter.condition())
            .order_by(name_order(), Order::Asc)
            .order_by_asc(server::Column::Id);
        Ok(ids.into_tuple().all(&self.read).await?)
    }

    /// The visible servers of other accounts, ordered by id; for a token that is not for all servers all that it is for.
    pub async fn passing_servers(&self, visible: &Visibility) -> Result<Vec<Uuid>, StoreError> {
        let passing = visible.passing_branches();
        let Some(ids) = united(passing.iter().map(|branch| {
            let ids = server::Entity::find().select_only().column(server::Column::Id).filter(branch.clone());
            QueryTrait::into_query(ids)
        })) else {
            return Ok(Vec::new());
        };
        let rows = self.read.query_all_raw(self.read.get_database_backend().build(&ids)).await?;
        let mut ids = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<Vec<Uuid>, _>>()?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Those of these servers that are visible, in no order.
    pub async fn visible_among(&self, visible: &Visibility, ids: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
        let mut found = Vec::new();
        for some in ids.chunks(ROWS_AT_ONCE) {
            let filter = ServerFilter { ids: Some(some.to_vec()), ..ServerFilter::default() };
            found.extend(self.servers_that(visible, filter).await?);
        }
        Ok(found)
    }

    /// Lists the visible servers, ordered by name.
    pub async fn list_servers(
        &self,
        visible: &Visibility,
        filter: ServerFilter,
        page: PageRequest,
    ) -> Result<Page<Server>, StoreError> {
        let (query, total) = self.page_of_servers(visible, &filter.condition(), page).await?;
        let records = query.all(&self.read).await?;
        let ids: Vec<Uuid> = records.iter().map(|record| record.id).collect();
        let mut tags = tags_of(&self.read, &ids).await?;
        let items = records
            .into_iter()
            .map(|record| Server { tags: tags.remove(&record.id).unwrap_or_default(), record })
            .collect();
        Ok(Page { items, total })
    }

    /// The query of a page of the visible servers that fulfil a condition, ordered by name, and the length of the whole list.
    pub(super) async fn page_of_servers(
        &self,
        visible: &Visibility,
        condition: &Condition,
        page: PageRequest,
    ) -> Result<(Select<server::Entity>, u64), StoreError> {
        let mut branches = self.branches(visible).await?;
        let tagged = match branches.tagged() {
            Some((owner_id, tags)) => Some(self.count_tagged(owner_id, tags).await?),
            None => None,
        };
        if tagged.is_some_and(|count| count <= FEW_TAGGED) {
            branches = branches.collected();
        }
        let total = match tagged {
            Some(count) if condition.is_empty() => count,
            _ => self.count_servers(&branches, condition).await?,
        };
        Ok((page_of(&branches, condition, page), total))
    }

    async fn count_servers(&self, branches: &Branches, condition: &Condition) -> Result<u64, StoreError> {
        let mut total = 0;
        for branch in branches.iter() {
            total += server::Entity::find().filter(branch.clone()).filter(condition.clone()).count(&self.read).await?;
        }
        Ok(total)
    }

    /// All visible servers, ordered by id.
    pub async fn visible_servers(&self, visible: &Visibility) -> Result<Vec<VisibleServer>, StoreError> {
        let query = server::Entity::find()
            .select_only()
            .column(server::Column::Id)
            .column(server::Column::OwnerId)
            .column(server::Column::SessionId)
            .column_as(server::Column::Agent.is_not_null(), "has_agent")
            .column(server::Column::LastSeenAt)
            .column(server::Column::UpdatedAt)
            .filter(self.branches(visible).await?.condition())
            .order_by_asc(server::Column::Id);
        type Row = (Uuid, Uuid, Option<Uuid>, bool, Option<Millis>, Millis);
        let rows = query.into_tuple::<Row>().all(&self.read).await?;
        let server = |(id, owner_id, session_id, has_agent, last_seen_at, updated_at): Row| VisibleServer {
            id,
            owner_id,
            status: recorded_status(session_id.is_some(), has_agent),
            last_seen_at: last_seen_at.map(Timestamp::from),
            updated_at: updated_at.into(),
        };
        Ok(rows.into_iter().map(server).collect())
    }

    /// The next visible servers after `after`, ordered by id and without their tags, for a reader that wants all of them.
    pub async fn servers_after(
        &self,
        visible: &Visibility,
        after: Option<Uuid>,
        limit: u64,
    ) -> Result<Vec<server::Model>, StoreError> {
        let behind = after.map(|id| server::Column::Id.gt(id));
        let query = server::Entity::find()
            .filter(self.branches(visible).await?.condition())
            .filter(Condition::all().add_option(behind))
            .order_by_asc(server::Column::Id)
            .limit(limit);
        Ok(query.all(&self.read).await?)
    }
}

/// As the index of names has it, whose entries are short: names are shorter.
fn name_order() -> SimpleExpr {
    Expr::cust("substr(servers.search_text, 1, 128)")
}

/// The query of a page of servers, ordered by name.
fn page_of(branches: &Branches, condition: &Condition, page: PageRequest) -> Select<server::Entity> {
    let by_name =
        |query: Select<server::Entity>| query.order_by(name_order(), Order::Asc).order_by_asc(server::Column::Id);
    let of = |branch: &Condition| server::Entity::find().filter(branch.clone()).filter(condition.clone());
    if let Some(only) = branches.only() {
        return by_name(of(only)).limit(page.limit).offset(page.offset);
    }
    // The page is among the first rows of each branch.
    let first = |branch: &Condition| {
        let ids = by_name(of(branch)).select_only().column(server::Column::Id);
        let ids = QueryTrait::into_query(ids.limit(page.limit.saturating_add(page.offset)));
        // SQLite takes an order and a limit only in a subquery of its own.
        Query::select().column(server::Column::Id).from_subquery(ids, "first").to_owned()
    };
    let among = united(branches.iter().map(first)).map(|ids| server::Column::Id.in_subquery(ids));
    by_name(server::Entity::find().filter(Condition::all().add_option(among))).limit(page.limit).offset(page.offset)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sea_orm::DatabaseBackend;

    use super::*;
    use crate::audit::Actor;
    use crate::{DatabaseSettings, GrantScope, NewServer, NewUser, Registration, Shares, TokenScope};

    const PAGE: PageRequest = PageRequest { limit: 100, offset: 50 };

    async fn store() -> (Store, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        (Store::open(&url, DatabaseSettings::default()).await.unwrap(), directory)
    }

    /// SQLite's plan for a page.
    async fn plan(store: &Store, visible: &Visibility) -> Vec<String> {
        plan_of(store, &store.branches(visible).await.unwrap()).await
    }

    async fn plan_of(store: &Store, branches: &Branches) -> Vec<String> {
        let mut query = page_of(branches, &Condition::all(), PAGE).build(DatabaseBackend::Sqlite);
        query.sql = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let steps = sea_orm::ConnectionTrait::query_all_raw(&store.read, query).await.unwrap();
        steps.iter().map(|step| step.try_get::<String>("", "detail").unwrap()).collect()
    }

    fn visible(scopes: &[(u128, GrantScope)]) -> Visibility {
        let scopes = scopes.iter().map(|(owner, scope)| (Uuid::from_u128(*owner), scope));
        Visibility::with(Uuid::nil(), Arc::new(Shares::of(Uuid::nil(), scopes)))
    }

    #[tokio::test]
    async fn a_list_without_shares_is_the_query_of_one_owner() {
        let (store, _directory) = store().await;

        let branches = store.branches(&visible(&[])).await.unwrap();
        let query = page_of(&branches, &Condition::all(), PAGE).build(DatabaseBackend::Sqlite);

        let (_, from) = query.sql.split_once(" FROM ").unwrap();
        let expected = r#""servers" WHERE "servers"."owner_id" = ? ORDER BY substr(servers.search_text, 1, 128) ASC, "servers"."id" ASC LIMIT ? OFFSET ?"#;
        assert_eq!(from, expected);
    }

    #[tokio::test]
    async fn the_servers_of_one_tag_are_read_by_their_owner() {
        let (store, _directory) = store().await;

        let plan = plan(&store, &visible(&[(1, GrantScope::Tag("db".to_owned()))])).await;

        let expected = [
            "SEARCH servers USING INDEX servers_by_name (owner_id=?)",
            "SEARCH server_tags EXISTS USING COVERING INDEX sqlite_autoindex_server_tags_1 (server_id=? AND tag=?)",
        ];
        assert_eq!(plan, expected, "in the order of their names, without sorting");
    }

    #[tokio::test]
    async fn few_servers_with_a_tag_are_found_by_the_index_of_tags() {
        let (store, _directory) = store().await;
        let visible = visible(&[(1, GrantScope::Tag("db".to_owned()))]);

        let few = store.branches(&visible).await.unwrap().collected();
        let plan = plan_of(&store, &few).await;

        let by_tag = "SEARCH server_tags USING COVERING INDEX server_tags_by_owner (owner_id=? AND tag=?)";
        assert!(plan.iter().any(|step| step == by_tag), "{plan:#?}");
        assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:#?}");
    }

    #[tokio::test]
    async fn the_page_of_an_owner_is_read_in_its_order() {
        let (store, _directory) = store().await;

        let plan = plan(&store, &visible(&[])).await;

        assert_eq!(plan, ["SEARCH servers USING INDEX servers_by_name (owner_id=?)"]);
    }

    #[tokio::test]
    async fn no_list_of_shares_scans_a_table() {
        let (store, _directory) = store().await;
        let tag = |owner: u128| (owner, GrantScope::Tag("db".to_owned()));
        let server = |owner: u128| (owner, GrantScope::Server(Uuid::from_u128(owner)));
        let some = vec![(1, GrantScope::All), tag(2), server(2), tag(3), server(4)];
        let thousand: Vec<(u128, GrantScope)> = (1..=300).map(tag).chain((301..=600).map(server)).collect();

        let ids = TokenScope::ServerIds((1..=500).map(Uuid::from_u128).collect());
        for scopes in [some, thousand] {
            for within in [TokenScope::All, TokenScope::Tag("web".to_owned()), ids.clone()] {
                let plan = plan(&store, &visible(&scopes).within(&within)).await;
                let scanned: Vec<&String> = plan.iter().filter(|step| step.starts_with("SCAN")).collect();
                // What was found by its index before.
                assert!(scanned.iter().all(|step| *step == "SCAN first"), "{plan:#?}");
            }
        }
    }

    #[tokio::test]
    async fn the_list_of_a_token_is_one_query_with_an_index() {
        let (store, _directory) = store().await;
        let owned = || Visibility::of_owner(Uuid::from_u128(1));

        let tagged = plan(&store, &owned().within(&TokenScope::Tag("db".to_owned()))).await;
        let named = plan(&store, &owned().within(&TokenScope::ServerIds(vec![Uuid::from_u128(2)]))).await;

        let expected = [
            "SEARCH servers USING INDEX servers_by_name (owner_id=?)",
            "SEARCH server_tags EXISTS USING COVERING INDEX sqlite_autoindex_server_tags_1 (server_id=? AND tag=?)",
        ];
        assert_eq!(tagged, expected, "in the order of their names, without sorting");
        assert!(named.iter().all(|step| !step.starts_with("SCAN")), "{named:#?}");
    }

    #[tokio::test]
    async fn both_ways_to_the_servers_with_a_tag_find_the_same() {
        let (store, _directory) = store().await;
        let user = NewUser {
            id: Uuid::now_v7(),
            email: "ada@example.com".to_owned(),
            username: "ada".to_owned(),
            full_name: String::new(),
            password_hash: String::new(),
        };
        let owner_id = store.create_user(user, Registration::Open, "", None).await.unwrap().id;
        for (name, tags) in [("c", vec!["db"]), ("a", vec!["eu", "db"]), ("d", vec!["web"]), ("b", vec!["eu"])] {
            let new = NewServer {
                owner_id,
                name: name.to_owned(),
                host: "192.0.2.10".to_owned(),
                port: 22,
                description: String::new(),
                tags: tags.into_iter().map(str::to_owned).collect(),
            };
            store.create_server(new, Actor::command_line()).await.unwrap();
        }
        let tags = [GrantScope::Tag("db".to_owned()), GrantScope::Tag("eu".to_owned())];
        let shares = Shares::of(Uuid::nil(), tags.iter().map(|scope| (owner_id, scope)));
        let visible = Visibility::with(Uuid::nil(), Arc::new(shares));
        let page = PageRequest { limit: 2, offset: 0 };
        let names = async |branches: &Branches| -> Vec<String> {
            let found = page_of(branches, &Condition::all(), page).all(&store.read).await.unwrap();
            found.into_iter().map(|server| server.name).collect()
        };

        let branches = store.branches(&visible).await.unwrap();
        let tagged: Vec<String> = ["db", "eu"].map(str::to_owned).to_vec();
        assert_eq!(branches.tagged(), Some((owner_id, tagged.as_slice())));
        assert_eq!(names(&branches).await, ["a", "b"]);
        assert_eq!(names(&branches.collected()).await, ["a", "b"]);
        let listed = store.list_servers(&visible, ServerFilter::default(), page).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (2, 3), "a server with both tags counts once");
        let filter = ServerFilter { text: Some("c".to_owned()), ..ServerFilter::default() };
        assert_eq!(store.list_servers(&visible, filter, page).await.unwrap().total, 1);
    }
}
