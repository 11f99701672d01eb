//! Grants, as responses show them.

use std::collections::HashSet;

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::http::field_out::{Id, TimeOut};
use crate::http::people_out::{PersonOut, RightOut, RoleOut};
use crate::store::{Grant, GrantNames, GrantScope, GrantSubject, Store};

/// What a user or team may do to servers of an account.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct GrantOut {
    id: Id,
    subject: SubjectOut,
    scope: ScopeOut,
    role: RoleOut,
    /// The rights that the role `operator` has by this grant.
    rights: Vec<RightOut>,
    /// The account whose servers are meant.
    owner: PersonOut,
    /// Who gave it; null if that account was deleted.
    giver: Option<PersonOut>,
    created_at: TimeOut,
}

/// A user or a team.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SubjectOut {
    user_id: Option<Id>,
    username: Option<String>,
    team_id: Option<Id>,
    team_name: Option<String>,
}

/// One server, the servers with a tag, or all.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ScopeOut {
    server_id: Option<Id>,
    server_name: Option<String>,
    tag: Option<String>,
    all: bool,
}

impl ScopeOut {
    pub fn new(scope: &GrantScope, names: &GrantNames) -> Self {
        let none = Self { server_id: None, server_name: None, tag: None, all: false };
        match scope {
            GrantScope::Server(id) => {
                Self { server_id: Some(Id(*id)), server_name: names.servers.get(id).cloned(), ..none }
            }
            GrantScope::Tag(tag) => Self { tag: Some(tag.clone()), ..none },
            GrantScope::All => Self { all: true, ..none },
        }
    }
}

impl SubjectOut {
    pub fn new(subject: GrantSubject, names: &GrantNames) -> Self {
        let none = Self { user_id: None, username: None, team_id: None, team_name: None };
        match subject {
            GrantSubject::User(id) => Self { user_id: Some(Id(id)), username: names.users.get(&id).cloned(), ..none },
            GrantSubject::Team(id) => Self { team_id: Some(Id(id)), team_name: names.teams.get(&id).cloned(), ..none },
        }
    }
}

/// Grants with the names of what they refer to. Those whose owner was deleted a moment ago are left out.
pub async fn shown(store: &Store, grants: Vec<Grant>) -> Result<Vec<GrantOut>, ApiError> {
    let (mut users, mut teams, mut servers) = (HashSet::new(), HashSet::new(), HashSet::new());
    for grant in &grants {
        users.insert(grant.owner_id);
        users.extend(grant.giver_id);
        match grant.subject {
            GrantSubject::User(id) => users.insert(id),
            GrantSubject::Team(id) => teams.insert(id),
        };
        if let GrantScope::Server(id) = grant.scope {
            servers.insert(id);
        }
    }
    let ids = |set: HashSet<Uuid>| set.into_iter().collect::<Vec<_>>();
    let names = store.names_for_grants(&ids(users), &ids(teams), &ids(servers)).await?;
    let person = |id: Uuid| Some(PersonOut::new(id, names.users.get(&id)?.clone()));
    let out = |grant: Grant| {
        Some(GrantOut {
            id: Id(grant.id),
            subject: SubjectOut::new(grant.subject, &names),
            scope: ScopeOut::new(&grant.scope, &names),
            role: RoleOut(grant.role),
            rights: grant.rights.iter().map(RightOut).collect(),
            owner: person(grant.owner_id)?,
            giver: grant.giver_id.and_then(person),
            created_at: TimeOut(grant.created_at),
        })
    };
    Ok(grants.into_iter().filter_map(out).collect())
}
