//! All grants in memory: what each user may do to which servers of others. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::{Action, Standing, allows};
use crate::store::{Grant, GrantScope, GrantSubject, GrantsAndMembers, Shares, Visibility};

/// All grants at one moment.
#[derive(Debug, Default)]
pub struct Sharing {
    grants: Vec<Grant>,
    members: HashMap<Uuid, Vec<Uuid>>,
    disabled: HashSet<Uuid>,
    /// The names of each user's teams.
    teams: HashMap<Uuid, Vec<String>>,
    /// What reaches each user.
    reaches: HashMap<Uuid, Reach>,
    /// By owner, the places of the grants on their servers.
    by_owner: HashMap<Uuid, Vec<usize>>,
}

/// What reaches one user.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reach {
    servers: HashMap<Uuid, Standing>,
    tags: HashMap<Uuid, HashMap<String, Standing>>,
    owners: HashMap<Uuid, Standing>,
    /// Every scope with its owner and what is granted there.
    scopes: Vec<(Uuid, GrantScope, Standing)>,
    /// All of it, for lists.
    seen: Arc<Shares>,
}

/// How a user has a role on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Means<'a> {
    pub grant: &'a Grant,
    /// The team through which it reaches the user.
    pub team_id: Option<Uuid>,
}

/// Somebody who may see a server: what they may do, and by which grants. The owner needs none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person<'a> {
    pub user_id: Uuid,
    pub standing: Standing,
    pub means: Vec<Means<'a>>,
}

/// A server, as far as rights depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    pub tags: &'a [String],
}

impl Facts<'_> {
    fn is_in(&self, grant: &Grant) -> bool {
        match &grant.scope {
            GrantScope::Server(id) => *id == self.server_id,
            GrantScope::Tag(tag) => grant.owner_id == self.owner_id && self.tags.contains(tag),
            GrantScope::All => grant.owner_id == self.owner_id,
        }
    }
}

impl Reach {
    fn add(&mut self, grant: &Grant) {
        let given = Standing::granted(grant.role, grant.rights);
        let standing = match &grant.scope {
            GrantScope::Server(id) => self.servers.entry(*id).or_insert(given),
            GrantScope::Tag(tag) => self.tags.entry(grant.owner_id).or_default().entry(tag.clone()).or_insert(given),
            GrantScope::All => self.owners.entry(grant.owner_id).or_insert(given),
        };
        *standing = standing.with(given);
        self.scopes.push((grant.owner_id, grant.scope.clone(), given));
    }

    fn shares(&self, user_id: Uuid, action: Action) -> Shares {
        let allowed = self.scopes.iter().filter(|(_, _, standing)| allows(*standing, action));
        Shares::of(user_id, allowed.map(|(owner_id, scope, _)| (*owner_id, scope)))
    }

    fn standing(&self, facts: &Facts<'_>) -> Option<Standing> {
        let tagged = self.tags.get(&facts.owner_id);
        let of_tags = tagged.into_iter().flat_map(|tagged| facts.tags.iter().filter_map(|tag| tagged.get(tag)));
        let of_server = self.servers.get(&facts.server_id);
        let all = of_server.into_iter().chain(self.owners.get(&facts.owner_id)).chain(of_tags);
        all.copied().reduce(Standing::with)
    }
}

impl Sharing {
    pub fn new(all: GrantsAndMembers) -> Self {
        let GrantsAndMembers { grants, members, team_names, disabled } = all;
        let mut teams: HashMap<Uuid, Vec<String>> = HashMap::new();
        for (team_id, users) in &members {
            let Some(name) = team_names.get(team_id) else { continue };
            for user_id in users {
                teams.entry(*user_id).or_default().push(name.clone());
            }
        }
        // In the same order whenever this is read: they are compared.
        teams.values_mut().for_each(|names| names.sort_unstable());
        let mut sharing = Self { members, disabled, teams, ..Self::default() };
        for (place, grant) in grants.iter().enumerate() {
            sharing.by_owner.entry(grant.owner_id).or_default().push(place);
            for user_id in sharing.subjects(grant) {
                sharing.reaches.entry(user_id).or_default().add(grant);
            }
        }
        for (user_id, reach) in &mut sharing.reaches {
            reach.seen = Arc::new(reach.shares(*user_id, Action::See));
        }
        Self { grants, ..sharing }
    }

    /// The users whom a grant reaches. Grants to the owner mean nothing.
    fn subjects(&self, grant: &Grant) -> Vec<Uuid> {
        let mut users = match grant.subject {
            GrantSubject::User(user_id) => vec![user_id],
            GrantSubject::Team(team_id) => self.members.get(&team_id).cloned().unwrap_or_default(),
        };
        users.retain(|user_id| *user_id != grant.owner_id);
        users
    }

    /// What a user is for a server; `None` if they may not know of it.
    pub fn standing(&self, user_id: Uuid, facts: &Facts<'_>) -> Option<Standing> {
        if user_id == facts.owner_id {
            return Some(Standing::OWNER);
        }
        self.reaches.get(&user_id)?.standing(facts)
    }

    /// Whether this account is disabled.
    pub fn is_disabled(&self, user_id: Uuid) -> bool {
        self.disabled.contains(&user_id)
    }

    /// The names of a user's teams.
    pub fn teams_of(&self, user_id: Uuid) -> &[String] {
        self.teams.get(&user_id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The servers to which a user may do this.
    pub fn visible(&self, user_id: Uuid, action: Action) -> Visibility {
        match self.reaches.get(&user_id) {
            None => Visibility::of_owner(user_id),
            Some(reach) if action == Action::See => Visibility::with(user_id, reach.seen.clone()),
            Some(reach) => Visibility::with(user_id, Arc::new(reach.shares(user_id, action))),
        }
    }

    /// The accounts that own servers that a user can see, the user's own first.
    pub fn owners_seen(&self, user_id: Uuid) -> Vec<Uuid> {
        let scopes = self.reaches.get(&user_id).into_iter().flat_map(|reach| &reach.scopes);
        let mut others: Vec<Uuid> = scopes.map(|(owner_id, _, _)| *owner_id).collect();
        others.sort_unstable();
        others.dedup();
        [user_id].into_iter().chain(others.into_iter().filter(|owner_id| *owner_id != user_id)).collect()
    }

    /// Everybody whom a grant on servers of this owner reaches.
    pub fn guests(&self, owner_id: Uuid) -> HashSet<Uuid> {
        self.of_owner(owner_id).flat_map(|grant| self.subjects(grant)).collect()
    }

    /// Everybody who may see a server, the owner first, then from the most rights to the fewest.
    pub fn people(&self, facts: &Facts<'_>) -> Vec<Person<'_>> {
        let mut means: BTreeMap<Uuid, Vec<Means<'_>>> = BTreeMap::new();
        for grant in self.of_owner(facts.owner_id).filter(|grant| facts.is_in(grant)) {
            let team_id = match grant.subject {
                GrantSubject::Team(team_id) => Some(team_id),
                GrantSubject::User(_) => None,
            };
            for user_id in self.subjects(grant) {
                means.entry(user_id).or_default().push(Means { grant, team_id });
            }
        }
        let owner = Person { user_id: facts.owner_id, standing: Standing::OWNER, means: Vec::new() };
        let mut people: Vec<Person<'_>> = means
            .into_iter()
            .filter_map(|(user_id, means)| {
                let given = means.iter().map(|means| Standing::granted(means.grant.role, means.grant.rights));
                Some(Person { user_id, standing: given.reduce(Standing::with)?, means })
            })
            .collect();
        people.sort_by_key(|person| std::cmp::Reverse(person.standing.role));
        people.insert(0, owner);
        people
    }

    /// The servers, those that are in all of these shares, at which somebody is shown a grant that is neither theirs nor on their
    /// own servers: a caller that manages a server is shown all [`Self::people`] with their grants, others its managers alone.
    pub fn where_shown(&self, user_id: Uuid, grant: &Grant) -> [Shares; 3] {
        let of = |users: &[Uuid], action: Action| {
            let scopes = users.iter().filter_map(|user_id| self.reaches.get(user_id)).flat_map(|reach| &reach.scopes);
            let allowed =
                scopes.filter(|(owner_id, _, standing)| *owner_id == grant.owner_id && allows(*standing, action));
            Shares::of(user_id, allowed.map(|(owner_id, scope, _)| (*owner_id, scope)))
        };
        let mut people = self.subjects(grant);
        // A grant that reaches nobody is shown with nobody.
        let scope = (!people.is_empty()).then_some((grant.owner_id, &grant.scope));
        people.push(user_id);
        [Shares::of(user_id, scope), of(&[user_id], Action::See), of(&people, Action::Manage)]
    }

    fn of_owner(&self, owner_id: Uuid) -> impl Iterator<Item = &Grant> {
        let places = self.by_owner.get(&owner_id).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|place| self.grants.get(*place))
    }

    /// Whether a grant names this server.
    pub fn names_server(&self, owner_id: Uuid, server_id: Uuid) -> bool {
        self.of_owner(owner_id).any(|grant| grant.scope == GrantScope::Server(server_id))
    }

    /// Whether a grant is for one of these tags.
    pub fn names_tag(&self, owner_id: Uuid, tags: &[String]) -> bool {
        let is_one = |grant: &Grant| matches!(&grant.scope, GrantScope::Tag(tag) if tags.contains(tag));
        self.of_owner(owner_id).any(is_one)
    }

    /// The users who may do something else than they might by `other`.
    pub fn changed_since(&self, other: &Self) -> Vec<Uuid> {
        let users: HashSet<&Uuid> = self.reaches.keys().chain(other.reaches.keys()).collect();
        let differs = |user_id: &&&Uuid| self.reaches.get(**user_id) != other.reaches.get(**user_id);
        users.iter().filter(differs).map(|user_id| **user_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;

    use super::*;
    use crate::store::{Right, Rights, Role};

    const OWNER: Uuid = Uuid::from_u128(1);
    const BOB: Uuid = Uuid::from_u128(2);
    const EVE: Uuid = Uuid::from_u128(3);
    const TEAM: Uuid = Uuid::from_u128(4);
    const SERVER: Uuid = Uuid::from_u128(5);

    fn grant(number: u128, subject: GrantSubject, scope: GrantScope, role: Role, rights: &[Right]) -> Grant {
        Grant {
            id: Uuid::from_u128(100 + number),
            owner_id: OWNER,
            giver_id: Some(OWNER),
            subject,
            scope,
            role,
            rights: rights.iter().copied().collect(),
            created_at: Timestamp::from_millis(1),
        }
    }

    fn sharing(grants: Vec<Grant>) -> Sharing {
        Sharing::new(GrantsAndMembers { grants, members: [(TEAM, vec![BOB, OWNER])].into(), ..Default::default() })
    }

    #[test]
    fn the_teams_of_a_user_are_always_in_the_same_order() {
        let ids = || (0..8).map(Uuid::from_u128);
        let names: Vec<String> = ids().map(|id| format!("team {}", id.as_u128())).collect();
        let sharing = Sharing::new(GrantsAndMembers {
            members: ids().map(|id| (id, vec![BOB])).collect(),
            team_names: ids().zip(names.iter().rev().cloned()).collect(),
            ..Default::default()
        });

        assert_eq!(sharing.teams_of(BOB), names);
    }

    fn facts(tags: &[String]) -> Facts<'_> {
        Facts { server_id: SERVER, owner_id: OWNER, tags }
    }

    fn tag(name: &str) -> GrantScope {
        GrantScope::Tag(name.to_owned())
    }

    #[test]
    fn the_highest_role_counts_and_the_rights_of_all_operator_grants_together() {
        let all = sharing(vec![
            grant(1, GrantSubject::User(BOB), GrantScope::Server(SERVER), Role::Operator, &[Right::Logs]),
            grant(2, GrantSubject::Team(TEAM), tag("db"), Role::Operator, &[Right::Commands]),
            grant(3, GrantSubject::User(BOB), GrantScope::All, Role::Responder, &[]),
        ]);
        let tags = ["db".to_owned()];

        let standing = all.standing(BOB, &facts(&tags)).unwrap();
        let rights: Rights = [Right::Logs, Right::Commands].into_iter().collect();
        assert_eq!(standing, Standing { role: Role::Operator, rights });
        let without = all.standing(BOB, &facts(&[])).unwrap();
        assert_eq!(without.rights, [Right::Logs].into_iter().collect());
        let other = Facts { server_id: Uuid::from_u128(6), ..facts(&[]) };
        assert_eq!(all.standing(BOB, &other).unwrap().role, Role::Responder);
        assert_eq!(all.standing(EVE, &facts(&tags)), None);
    }

    #[test]
    fn a_manager_and_the_owner_have_every_right() {
        let all = sharing(vec![grant(1, GrantSubject::User(BOB), tag("db"), Role::Manager, &[])]);
        let tags = ["db".to_owned()];

        assert_eq!(all.standing(BOB, &facts(&tags)).unwrap().rights, Rights::ALL);
        assert_eq!(all.standing(OWNER, &facts(&tags)), Some(Standing::OWNER));
        assert_eq!(all.standing(BOB, &Facts { owner_id: EVE, ..facts(&tags) }), None);
    }

    #[test]
    fn a_server_lists_its_people_with_their_grants() {
        let all = sharing(vec![
            grant(1, GrantSubject::User(EVE), GrantScope::Server(SERVER), Role::Viewer, &[]),
            grant(2, GrantSubject::Team(TEAM), GrantScope::All, Role::Manager, &[]),
            grant(3, GrantSubject::User(EVE), tag("web"), Role::Manager, &[]),
        ]);

        let people = all.people(&facts(&[]));

        let seen: Vec<(Uuid, Role, usize)> =
            people.iter().map(|person| (person.user_id, person.standing.role, person.means.len())).collect();
        assert_eq!(seen, [(OWNER, Role::Owner, 0), (BOB, Role::Manager, 1), (EVE, Role::Viewer, 1)]);
        assert_eq!(people.iter().find(|person| person.user_id == BOB).unwrap().means[0].team_id, Some(TEAM));
    }

    #[test]
    fn a_grant_is_shown_at_servers_that_the_reader_or_somebody_whom_it_reaches_manages() {
        let view = |number, user_id, scope| grant(number, GrantSubject::User(user_id), scope, Role::Viewer, &[]);
        let to_eve = view(1, EVE, GrantScope::All);
        let to_bob = view(2, BOB, tag("db"));
        let all = sharing(vec![
            to_eve.clone(),
            to_bob.clone(),
            grant(3, GrantSubject::User(EVE), tag("web"), Role::Manager, &[]),
        ]);
        let shares = |scope: GrantScope| Shares::of(BOB, [(OWNER, &scope)]);

        let shown = all.where_shown(BOB, &to_eve);
        assert_eq!(shown, [shares(GrantScope::All), shares(tag("db")), shares(tag("web"))]);
        let shown = all.where_shown(EVE, &to_bob);
        assert_eq!(shown, [shares(tag("db")), shares(GrantScope::All), shares(tag("web"))]);
        let nobody = GrantSubject::Team(Uuid::from_u128(9));
        let [scope, ..] = all.where_shown(EVE, &grant(4, nobody, GrantScope::All, Role::Viewer, &[]));
        assert!(scope.is_empty());
    }

    #[test]
    fn only_those_whose_rights_changed_are_affected() {
        let view = grant(1, GrantSubject::User(EVE), GrantScope::All, Role::Viewer, &[]);
        let before = sharing(vec![view.clone()]);
        let after = sharing(vec![view, grant(2, GrantSubject::Team(TEAM), GrantScope::All, Role::Viewer, &[])]);

        assert_eq!(after.changed_since(&before), [BOB]);
        assert_eq!(before.changed_since(&after), [BOB]);
        assert_eq!(after.owners_seen(BOB), [BOB, OWNER]);
        assert_eq!(after.guests(OWNER), [BOB, EVE].into());
    }

    #[test]
    fn a_list_for_an_action_contains_what_some_grant_allows() {
        let commands = [Right::Commands];
        let all = sharing(vec![
            grant(1, GrantSubject::User(BOB), tag("db"), Role::Operator, &commands),
            grant(2, GrantSubject::User(BOB), GrantScope::All, Role::Viewer, &[]),
        ]);

        assert_ne!(all.visible(BOB, Action::See), all.visible(BOB, Action::Use(Right::Commands)));
        assert_eq!(all.visible(BOB, Action::Use(Right::Logs)), Visibility::of_owner(BOB));
        assert_eq!(all.visible(BOB, Action::Own), Visibility::of_owner(BOB));
        assert_eq!(all.visible(EVE, Action::See), Visibility::of_owner(EVE));
    }
}
