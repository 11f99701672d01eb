//! Which servers a list may contain: those of an owner, and those that others share with them.
//!
//! A list of somebody without shares is the query of one owner. For everybody else the servers fall into few
//! disjoint branches, each with an index, whatever the number of grants is: whole owners together, servers with tags by chunks of
//! owners, and single servers. One branch is a condition of the query itself, so that the list of somebody who sees the servers
//! of one tag costs as much as their owner's: an index of names is read until the page is full, and an index of tags counts the
//! list. Several are joined by UNION ALL, and a page is taken from the first rows of each.

mod common;
mod fair;
mod limit;

use std::collections::BTreeMap;
use std::sync::Arc;

use entity::{server, server_tag};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement, SimpleExpr, UnionType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use self::fair::bounded;
use self::limit::Limit;
use super::{GrantScope, Store, StoreError, TokenScope};

/// Owners whose tags are looked up in one branch: SQLite nests conditions at most 1,000 deep, and joins at most 500 branches.
const OWNERS_IN_BRANCH: usize = 50;

/// Parts with whole owners, and parts with tags of owners. One statement joins the parts, for each kind of alerts, and SQLite
/// joins at most 500.
const MAX_PARTS: usize = 16;

/// The servers that a caller may see, or do something else to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visibility {
    own: Uuid,
    shares: Option<Arc<Shares>>,
    limit: Limit,
}

/// The servers that others share with somebody. No server is in two of the lists, if it has the owner that its grants name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// All servers of these.
    owners: Vec<Uuid>,
    /// By owner, servers with one of these tags, or of these ids.
    tagged: BTreeMap<Uuid, Tagged>,
    /// These servers, of owners who are in none of the other lists.
    ids: Vec<Uuid>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tagged {
    tags: Vec<String>,
    ids: Vec<Uuid>,
}

impl Shares {
    /// What these scopes of owners contain for somebody, who needs no grant for their own servers.
    pub fn of<'a>(own: Uuid, scopes: impl IntoIterator<Item = (Uuid, &'a GrantScope)>) -> Self {
        let mut shares = Self::default();
        let mut single: Vec<(Uuid, Uuid)> = Vec::new();
        let scopes = scopes.into_iter().filter(|(owner_id, _)| *owner_id != own).collect();
        for (owner_id, scope) in bounded(scopes) {
            match scope {
                GrantScope::All => shares.owners.push(owner_id),
                GrantScope::Tag(tag) => shares.tagged.entry(owner_id).or_default().tags.push(tag.clone()),
                GrantScope::Server(id) => single.push((owner_id, *id)),
            }
        }
        shares.owners.sort_unstable();
        shares.owners.dedup();
        shares.tagged.retain(|owner_id, _| shares.owners.binary_search(owner_id).is_err());
        for (owner_id, id) in single {
            if shares.owners.binary_search(&owner_id).is_ok() {
                continue;
            }
            match shares.tagged.get_mut(&owner_id) {
                Some(tagged) => tagged.ids.push(id),
                None => shares.ids.push(id),
            }
        }
        for tagged in shares.tagged.values_mut() {
            tagged.tags.sort_unstable();
            tagged.tags.dedup();
            tagged.ids.sort_unstable();
            tagged.ids.dedup();
        }
        shares.ids.sort_unstable();
        shares.ids.dedup();
        shares
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.tagged.is_empty() && self.ids.is_empty()
    }

    /// The owner and the tags, if there is nothing else.
    fn sole_tags(&self) -> Option<(Uuid, Vec<String>)> {
        match self.tagged.first_key_value() {
            Some((owner_id, Tagged { tags, ids })) if self.tagged.len() == 1 => {
                let is_all = self.owners.is_empty() && self.ids.is_empty() && ids.is_empty();
                is_all.then(|| (*owner_id, tags.clone()))
            }
            _ => None,
        }
    }

    /// The conditions of the branches, each with an index. `own` adds the servers of that account.
    fn branches(&self, own: Option<Uuid>) -> Vec<Condition> {
        let owners: Vec<Uuid> = own.into_iter().chain(self.owners.iter().copied()).collect();
        let mut branches = Vec::new();
        match owners.as_slice() {
            [] => {}
            [owner_id] => branches.push(owned(*owner_id)),
            _ => branches.push(Condition::all().add(server::Column::OwnerId.is_in(owners))),
        }
        let tagged: Vec<(&Uuid, &Tagged)> = self.tagged.iter().collect();
        branches.extend(tagged.chunks(OWNERS_IN_BRANCH).map(tagged_condition));
        if !self.ids.is_empty() {
            branches.push(Condition::all().add(server::Column::Id.is_in(self.ids.iter().copied())));
        }
        branches
    }
}

impl Tagged {
    fn condition(&self, owner_id: Uuid) -> Condition {
        let of_tags = has_one_of(&self.tags);
        let among = match self.ids.as_slice() {
            [] => Condition::all().add(of_tags),
            ids => Condition::any().add(of_tags).add(server::Column::Id.is_in(ids.iter().copied())),
        };
        owned(owner_id).add(among)
    }
}

impl Visibility {
    /// The servers of one account, and no others.
    pub fn of_owner(owner_id: Uuid) -> Self {
        Self { own: owner_id, shares: None, limit: Limit::None }
    }

    /// The servers of one account, and those that others share with it.
    pub fn with(own: Uuid, shares: Arc<Shares>) -> Self {
        Self { own, shares: Some(shares).filter(|shares| !shares.is_empty()), limit: Limit::None }
    }

    /// Those of the servers for which a token is.
    #[must_use]
    pub fn within(self, scope: &TokenScope) -> Self {
        Self { limit: Limit::of(scope), ..self }
    }

    /// None of the servers.
    #[must_use]
    pub fn nothing(self) -> Self {
        Self { limit: Limit::Nothing, ..self }
    }

    /// The one owner of all servers; none if there may be others.
    pub fn sole_owner(&self) -> Option<Uuid> {
        (self.shares.is_none() && self.limit == Limit::None).then_some(self.own)
    }

    /// The parts of it, which are few whatever the number of grants is: most have one owner each.
    pub(super) fn parts(&self) -> Vec<SeenPart> {
        let none = Shares::default();
        let shares = self.shares.as_deref().unwrap_or(&none);
        let whole: Vec<Uuid> = [self.own].into_iter().chain(shares.owners.iter().copied()).collect();
        let of_owners = |some: &[Uuid]| server::Column::OwnerId.is_in(some.iter().copied());
        let owners = whole.chunks(in_parts(whole.len())).map(|some| SeenPart {
            owners: some.to_vec(),
            servers: self.limit.condition().map(|limit| Condition::all().add(of_owners(some)).add(limit)),
        });
        let tagged: Vec<(&Uuid, &Tagged)> = shares.tagged.iter().collect();
        let with_tags = tagged.chunks(in_parts(tagged.len())).map(|some| SeenPart {
            owners: some.iter().map(|(owner_id, _)| **owner_id).collect(),
            servers: Some(self.limit.and(tagged_condition(some))),
        });
        let ids = server::Column::Id.is_in(shares.ids.iter().copied());
        let single = SeenPart { owners: Vec::new(), servers: Some(self.limit.and(Condition::all().add(ids))) };
        owners.chain(with_tags).chain((!shares.ids.is_empty()).then_some(single)).collect()
    }

    /// The conditions of the servers that may come and go while all of the account's own stay, each with an index: those that
    /// others share with the account, and all servers of a token that is not for all.
    pub(super) fn passing_branches(&self) -> Vec<Condition> {
        let own = (self.limit != Limit::None).then_some(self.own);
        let shares = self.shares.as_ref().map(|shares| shares.branches(own));
        let branches = shares.unwrap_or_else(|| own.map(owned).into_iter().collect());
        branches.into_iter().map(|branch| self.limit.and(branch)).collect()
    }

    /// The condition on a table of what belongs to an owner and may name one server or a tag: what belongs to the account itself,
    /// and what names a server that others share with it. For a token only what names its servers or its tag.
    pub(super) fn naming<C: ColumnTrait>(&self, owner: C, server: C, tag: C) -> Condition {
        let conditions = self.passing_branches();
        let passing = (!conditions.is_empty()).then(|| server.in_subquery(Branches { conditions, tagged: None }.ids()));
        let own = match &self.limit {
            Limit::None => Some(Condition::all().add(owner.eq(self.own))),
            Limit::Tag(name) => Some(Condition::all().add(owner.eq(self.own)).add(tag.eq(name.as_str()))),
            Limit::Ids(_) | Limit::Nothing => None,
        };
        Condition::any().add_option(own).add_option(passing)
    }

    /// Every account that owns some of the servers, or may.
    pub fn owners(&self) -> Vec<Uuid> {
        let shares = self.shares.iter().flat_map(|shares| shares.owners.iter().chain(shares.tagged.keys()));
        [self.own].into_iter().chain(shares.copied()).collect()
    }
}

/// A part of what somebody sees, for tables that know a server and its owner. No server is in two parts.
#[derive(Debug, Clone)]
pub(super) struct SeenPart {
    /// The owners of its servers; none where they are not known.
    pub owners: Vec<Uuid>,
    /// The condition on the table of servers; none for all servers of the owners.
    pub servers: Option<Condition>,
}

/// Disjoint conditions on the table of servers that together are a visibility.
pub(super) struct Branches {
    conditions: Vec<Condition>,
    /// The owner and the tags, if that is all.
    tagged: Option<(Uuid, Vec<String>)>,
}

impl Branches {
    /// The owner of all servers and their tags, if the visibility is one of tags of one owner.
    pub fn tagged(&self) -> Option<(Uuid, &[String])> {
        self.tagged.as_ref().map(|(owner_id, tags)| (*owner_id, tags.as_slice()))
    }

    /// The same servers, of which there are few: those that have the tags are collected first.
    pub fn collected(self) -> Self {
        let conditions = match &self.tagged {
            Some((owner_id, tags)) => vec![is_tagged(*owner_id, tags)],
            None => self.conditions,
        };
        Self { conditions, tagged: self.tagged }
    }

    /// The condition on the table of servers.
    pub fn condition(&self) -> Condition {
        match self.only() {
            Some(only) => only.clone(),
            None => Condition::all().add(server::Column::Id.in_subquery(self.ids())),
        }
    }

    /// The condition for a query that has few rows without it.
    pub fn any(&self) -> Condition {
        self.conditions.iter().fold(Condition::any(), |any, branch| any.add(branch.clone()))
    }

    /// The ids of all servers.
    pub fn ids(&self) -> SelectStatement {
        let of = |branch: &Condition| {
            let ids = server::Entity::find().select_only().column(server::Column::Id).filter(branch.clone());
            sea_orm::QueryTrait::into_query(ids)
        };
        united(self.conditions.iter().map(of)).unwrap_or_else(|| Query::select().to_owned())
    }

    /// The branch, if there is only one.
    pub fn only(&self) -> Option<&Condition> {
        match self.conditions.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The condition of each branch.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.conditions.iter()
    }
}

/// The rows of all statements.
pub(super) fn united(statements: impl Iterator<Item = SelectStatement>) -> Option<SelectStatement> {
    statements.reduce(|mut all, statement| all.union(UnionType::All, statement).to_owned())
}

impl Store {
    /// The branches of a visibility. Somebody without servers of their own has no branch for them.
    pub(super) async fn branches(&self, visibility: &Visibility) -> Result<Branches, StoreError> {
        let limit = &visibility.limit;
        let Some(shares) = &visibility.shares else {
            let tagged = match limit {
                Limit::Tag(tag) => Some((visibility.own, vec![tag.clone()])),
                Limit::None | Limit::Ids(_) | Limit::Nothing => None,
            };
            return Ok(Branches { conditions: vec![limit.and(owned(visibility.own))], tagged });
        };
        let any = server::Entity::find().select_only().column(server::Column::Id).filter(owned(visibility.own));
        let has_own = any.limit(1).into_tuple::<Uuid>().one(&self.read).await?.is_some();
        let own = has_own.then_some(visibility.own);
        let tagged = shares.sole_tags().filter(|_| own.is_none() && *limit == Limit::None);
        let conditions = shares.branches(own).into_iter().map(|branch| limit.and(branch)).collect();
        Ok(Branches { conditions, tagged })
    }

    /// How many servers an owner has with one of these tags.
    pub(super) async fn count_tagged(&self, owner_id: Uuid, tags: &[String]) -> Result<u64, StoreError> {
        let found = server_tag::Entity::find().filter(server_tag::Column::OwnerId.eq(owner_id));
        let found = found.filter(server_tag::Column::Tag.is_in(tags.iter().map(String::as_str)));
        match tags {
            [_] => Ok(found.count(&self.read).await?),
            _ => {
                let each = Expr::col(server_tag::Column::ServerId).count_distinct();
                let count = found.select_only().column_as(each, "servers").into_tuple::<i64>().one(&self.read).await?;
                Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
            }
        }
    }

    /// The owner of a server among these. For another server it returns the same as for one that does not exist, and takes as
    /// long.
    pub async fn find_visible(&self, visibility: &Visibility, id: Uuid) -> Result<Option<Uuid>, StoreError> {
        if let Some(owner_id) = visibility.sole_owner() {
            return Ok(self.owns_server(owner_id, id).await?.then_some(owner_id));
        }
        let none = Shares::default();
        let shares = visibility.shares.as_deref().unwrap_or(&none);
        let any = Branches { conditions: shares.branches(Some(visibility.own)), tagged: None }.any();
        let found = server::Entity::find_by_id(id)
            .filter(visibility.limit.and(any))
            .select_only()
            .column(server::Column::OwnerId);
        Ok(found.into_tuple().one(&self.read).await?)
    }
}

/// How many of these owners share a part, so that there are at most [`MAX_PARTS`].
fn in_parts(owners: usize) -> usize {
    owners.div_ceil(MAX_PARTS).max(1)
}

/// The servers with these tags of these owners.
fn tagged_condition(some: &[(&Uuid, &Tagged)]) -> Condition {
    match some {
        [(owner_id, tagged)] => tagged.condition(**owner_id),
        _ => some.iter().fold(Condition::any(), |any, (owner_id, tagged)| any.add(tagged.condition(**owner_id))),
    }
}

fn owned(owner_id: Uuid) -> Condition {
    Condition::all().add(server::Column::OwnerId.eq(owner_id))
}

/// The servers of an owner with one of these tags, from the index of tags.
fn is_tagged(owner_id: Uuid, tags: &[String]) -> Condition {
    let ids = Query::select()
        .column(server_tag::Column::ServerId)
        .from(server_tag::Entity)
        .and_where(server_tag::Column::OwnerId.eq(owner_id))
        .and_where(server_tag::Column::Tag.is_in(tags.iter().map(String::as_str)))
        .to_owned();
    Condition::all().add(server::Column::Id.in_subquery(ids))
}

/// Looks at the tags of one server at a time: another owner may have very many servers with the same tag.
fn has_one_of(tags: &[String]) -> SimpleExpr {
    let of_server =
        Expr::col((server_tag::Entity, server_tag::Column::ServerId)).equals((server::Entity, server::Column::Id));
    let tag = Expr::col((server_tag::Entity, server_tag::Column::Tag));
    let tagged = match tags {
        [tag_name] => tag.eq(tag_name.as_str()),
        _ => tag.is_in(tags.iter().map(String::as_str)),
    };
    Expr::exists(
        Query::select().expr(Expr::val(1)).from(server_tag::Entity).and_where(of_server).and_where(tagged).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::fair::MAX_SHARES;
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn shares(scopes: &[(u128, GrantScope)]) -> Shares {
        Shares::of(id(0), scopes.iter().map(|(owner, scope)| (id(*owner), scope)))
    }

    fn tag(name: &str) -> GrantScope {
        GrantScope::Tag(name.to_owned())
    }

    #[test]
    fn an_owner_who_shares_too_much_hides_nothing_of_others() {
        let many = (0..u128::try_from(MAX_SHARES).unwrap()).map(|number| (1, GrantScope::Server(id(100 + number))));
        let scopes: Vec<(u128, GrantScope)> =
            many.chain([(2, GrantScope::Server(id(20))), (3, GrantScope::All)]).collect();

        let all = shares(&scopes);

        assert_eq!(all.owners, [id(3)]);
        assert!(all.ids.contains(&id(20)));
        assert_eq!(all.ids.len(), MAX_SHARES - 1);
    }

    #[test]
    fn a_wider_grant_of_the_same_owner_covers_the_narrower_ones() {
        let all = shares(&[
            (1, GrantScope::Server(id(10))),
            (1, tag("db")),
            (1, GrantScope::All),
            (2, GrantScope::Server(id(20))),
            (2, tag("web")),
            (2, tag("web")),
            (3, GrantScope::Server(id(30))),
            (3, GrantScope::Server(id(30))),
        ]);

        assert_eq!(all.owners, [id(1)]);
        assert_eq!(all.tagged, [(id(2), Tagged { tags: vec!["web".into()], ids: vec![id(20)] })].into());
        assert_eq!(all.ids, [id(30)]);
        assert_eq!(all.branches(None).len(), 3);
        assert_eq!(all.branches(Some(id(0))).len(), 3);
    }

    #[test]
    fn grants_on_ones_own_servers_mean_nothing() {
        assert!(shares(&[(0, GrantScope::All), (0, tag("db"))]).is_empty());
        let visibility = Visibility::with(id(0), Arc::new(shares(&[(0, GrantScope::All)])));
        assert_eq!(visibility, Visibility::of_owner(id(0)));
        assert_eq!(visibility.sole_owner(), Some(id(0)));
    }

    #[test]
    fn a_token_that_is_not_for_all_servers_has_no_owner_whose_servers_are_all_its_own() {
        let owned = || Visibility::of_owner(id(0));

        assert_eq!(owned().within(&TokenScope::All), owned());
        for limited in [
            owned().within(&TokenScope::Tag("db".to_owned())),
            owned().within(&TokenScope::ServerIds(vec![id(10)])),
            owned().nothing(),
        ] {
            assert_eq!(limited.sole_owner(), None);
            let parts = limited.parts();
            assert!(parts.iter().all(|part| part.servers.is_some()), "{parts:?}");
        }
    }

    #[test]
    fn many_owners_with_tags_are_few_branches() {
        let many: Vec<(u128, GrantScope)> = (1..=1_000).map(|owner| (owner, tag("db"))).collect();

        assert_eq!(shares(&many).branches(None).len(), 1_000 / OWNERS_IN_BRANCH);
        assert_eq!(shares(&many[..1]).branches(None).len(), 1);
    }

    #[test]
    fn tags_of_one_owner_and_nothing_else_are_counted_by_their_index() {
        let tags = [(1, tag("web")), (1, tag("db"))];
        let more =
            [(1, GrantScope::Server(id(10))), (2, GrantScope::Server(id(20))), (2, tag("db")), (3, GrantScope::All)];

        assert_eq!(shares(&tags).sole_tags(), Some((id(1), vec!["db".to_owned(), "web".to_owned()])));
        for one in more {
            let scopes = [&tags[..], &[one]].concat();
            assert_eq!(shares(&scopes).sole_tags(), None, "{scopes:?}");
        }
    }
}
