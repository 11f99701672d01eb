//! The servers that a threshold or silence is for: exactly one of `server_id`, `tag` and `all`.

use uuid::Uuid;

use crate::auth::access::{AccessError, Action};
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{Clearable, Reference, Tag};
use crate::http::extract::given::Given;
use crate::http::reply::fault_of;
use crate::state::State;
use crate::store::{Caller, Reach, Visibility};

/// The reach that the three fields of a new threshold or silence select.
pub fn reach_of(
    server_id: &Given<Option<Reference>>,
    tag: &Given<Option<Tag>>,
    all: &Given<Option<bool>>,
    faults: &mut Faults,
) -> Option<Reach> {
    let is_faulty = server_id.is_faulty() || tag.is_faulty() || all.is_faulty();
    let server_id = server_id.maybe(faults).map(|Reference(id)| *id);
    let tag = tag.maybe(faults).map(|Tag(tag)| tag.clone());
    let is_all = all.maybe(faults) == Some(&true);
    if is_faulty {
        return None;
    }
    match one_of(server_id, tag, is_all) {
        Ok(Some(reach)) => Some(reach),
        Ok(None) => keep(missing(), faults),
        Err(found) => keep(found, faults),
    }
}

/// The reach after a change. It stays the same if the three fields name nothing, but may not be removed.
pub fn reach_after(
    found: Reach,
    server_id: Clearable<Reference>,
    tag: Clearable<Tag>,
    all: Option<bool>,
) -> Result<Reach, Faults> {
    let is_taken_away = match (&found.server_id, &found.tag) {
        (Some(_), _) => matches!(server_id, Clearable::Cleared),
        (None, Some(_)) => matches!(tag, Clearable::Cleared),
        (None, None) => all == Some(false),
    };
    let server_id = server_id.change(|Reference(id)| Some(id)).flatten();
    let tag = tag.change(|Tag(tag)| Some(tag)).flatten();
    match one_of(server_id, tag, all == Some(true))? {
        Some(reach) => Ok(reach),
        None if is_taken_away => Err(missing()),
        None => Ok(found),
    }
}

/// `None` if no field names a reach.
fn one_of(server_id: Option<Uuid>, tag: Option<String>, is_all: bool) -> Result<Option<Reach>, Faults> {
    let named = [("server_id", server_id.is_some()), ("tag", tag.is_some()), ("all", is_all)];
    let too_many = named.into_iter().filter(|(_, is_named)| *is_named).skip(1);
    let faults = too_many
        .flat_map(|(name, _)| fault_of(name, "value_error.reach", "name exactly one of server_id, tag and all").0);
    let faults = Faults(faults.collect());
    match (server_id, tag) {
        _ if !faults.0.is_empty() => Err(faults),
        (None, None) if !is_all => Ok(None),
        (server_id, tag) => Ok(Some(Reach { server_id, tag })),
    }
}

fn missing() -> Faults {
    fault_of("server_id", "value_error.missing", "field required")
}

fn keep<T>(found: Faults, faults: &mut Faults) -> Option<T> {
    faults.0.extend(found.0);
    None
}

/// The owner of these servers, if the caller may do this to them.
pub async fn owner_of(state: &State, caller: &Caller, reach: &Reach, action: Action) -> Result<Uuid, ApiError> {
    match reach.server_id {
        Some(server_id) => Ok(state.accounts.access.server(caller, server_id, action).await?.owner_id()),
        None => {
            state.accounts.access.account(caller, reach.tag.as_deref(), action)?;
            Ok(caller.user_id)
        }
    }
}

/// Checks that the caller may do this to something with this reach. What they may not see does not exist for them: `not_found`.
pub async fn expect_allowed(
    state: &State,
    caller: &Caller,
    (owner_id, reach): (Uuid, &Reach),
    action: Action,
    not_found: fn() -> ApiError,
) -> Result<(), ApiError> {
    match reach.server_id {
        Some(server_id) => match state.accounts.access.server(caller, server_id, action).await {
            Ok(_) => Ok(()),
            Err(AccessError::NotFound) => Err(not_found()),
            Err(error @ (AccessError::Forbidden | AccessError::TokenNotAllowed | AccessError::Store(_))) => {
                Err(error.into())
            }
        },
        None if owner_id == caller.user_id => {
            let (access, tag) = (&state.accounts.access, reach.tag.as_deref());
            access.account(caller, tag, Action::See).map_err(|_| not_found())?;
            Ok(access.account(caller, tag, action)?)
        }
        None => Err(not_found()),
    }
}

/// The owner of new servers of something that belongs to `owner_id`, if the caller may do this to them. It stays with its owner:
/// who manages one server must not make a rule for other servers of its owner.
pub async fn expect_same_owner(
    state: &State,
    caller: &Caller,
    (owner_id, reach): (Uuid, &Reach),
    action: Action,
) -> Result<(), ApiError> {
    if owner_of(state, caller, reach, action).await? == owner_id {
        Ok(())
    } else {
        Err(ApiError::code(ErrorCode::Forbidden))
    }
}

/// The servers whose alerts, thresholds and silences a list has: for one server those of its owner, otherwise all that the
/// caller can see.
pub async fn servers_listed(state: &State, caller: &Caller, server_id: Option<Uuid>) -> Result<Visibility, ApiError> {
    let access = &state.accounts.access;
    let Some(server_id) = server_id else { return Ok(access.visible(caller)) };
    match access.server(caller, server_id, Action::See).await {
        Ok(access) => Ok(Visibility::of_owner(access.owner_id())),
        // The list is as empty as for a server that does not exist.
        Err(AccessError::NotFound) => Ok(access.owned(caller)),
        Err(error @ (AccessError::Forbidden | AccessError::TokenNotAllowed | AccessError::Store(_))) => {
            Err(error.into())
        }
    }
}
