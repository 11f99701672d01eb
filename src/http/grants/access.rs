//! `/servers/{id}/access`: who may do what to a server, and by which grants.

use std::collections::HashSet;

use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use uuid::Uuid;

use super::out::ScopeOut;
use crate::auth::access::Role;
use crate::auth::access::sharing::{Facts, Means, Person};
use crate::http::error::ApiError;
use crate::http::extract::param::PageQuery;
use crate::http::extract::{Checked, IdPath, OnServer, See};
use crate::http::field_out::Id;
use crate::http::people_out::{PersonOut, RightOut, RoleOut};
use crate::http::reply::Listed;
use crate::store::{GrantNames, PageRequest};

/// What somebody may do to a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AccessOut {
    user: PersonOut,
    role: RoleOut,
    rights: Vec<RightOut>,
    /// The grants from which it follows. The owner needs none.
    grants: Vec<MeansOut>,
}

/// A grant that reaches somebody.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct MeansOut {
    id: Id,
    scope: ScopeOut,
    role: RoleOut,
    rights: Vec<RightOut>,
    /// The team through which it reaches them; null if it names them.
    team: Option<TeamNameOut>,
}

/// A team, for people.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct TeamNameOut {
    id: Id,
    name: String,
}

/// List who has access to a server
///
/// With their role, their rights and the grants from which these follow: the owner first, then by role. Only the owner and
/// managers see everybody. Others see themselves and whom they can ask: the owner and the managers.
#[api_v2_operation(tags(Sharing), operation_id = "list_server_access")]
pub async fn list(ask: Checked<OnServer<See, IdPath>, PageQuery>) -> Result<Listed<AccessOut>, ApiError> {
    let OnServer { access, caller, .. } = ask.subject;
    let store = &ask.state.store;
    let (server_id, owner_id) = (access.server_id(), access.owner_id());
    let tags = store.tags_of_server(server_id).await?;
    let sharing = ask.state.accounts.access.sharing();
    let mut people = sharing.people(&Facts { server_id, owner_id, tags: &tags });
    if access.role() < Role::Manager {
        people.retain(|person| person.standing.role >= Role::Manager || person.user_id == caller.user_id);
    }
    let total = people.len() as u64;
    let PageRequest { limit, offset } = ask.query.into();
    let page = people.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
    let page: Vec<Person<'_>> = page.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
    let users: Vec<Uuid> = page.iter().map(|person| person.user_id).collect();
    let means = page.iter().flat_map(|person| &person.means);
    let teams: Vec<Uuid> = means.filter_map(|means| means.team_id).collect::<HashSet<_>>().into_iter().collect();
    let names = store.names_for_grants(&users, &teams, &[server_id]).await?;
    let items = page.iter().filter_map(|person| AccessOut::new(person, &names)).collect();
    Ok(Listed { items, total })
}

impl AccessOut {
    /// None if the user was deleted a moment ago.
    fn new(person: &Person<'_>, names: &GrantNames) -> Option<Self> {
        Some(Self {
            user: PersonOut::new(person.user_id, names.users.get(&person.user_id)?.clone()),
            role: RoleOut(person.standing.role),
            rights: person.standing.rights.iter().map(RightOut).collect(),
            grants: person.means.iter().map(|means| MeansOut::new(means, names)).collect(),
        })
    }
}

impl MeansOut {
    fn new(means: &Means<'_>, names: &GrantNames) -> Self {
        let team = means.team_id.and_then(|id| Some(TeamNameOut { id: Id(id), name: names.teams.get(&id)?.clone() }));
        Self {
            id: Id(means.grant.id),
            scope: ScopeOut::new(&means.grant.scope, names),
            role: RoleOut(means.grant.role),
            rights: means.grant.rights.iter().map(RightOut).collect(),
            team,
        }
    }
}
