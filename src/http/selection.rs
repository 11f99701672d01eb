//! The servers that one request is for: named ones, those of a tag, or all.

use std::collections::HashSet;

use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use crate::auth::access::{Action, ServerAccess};
use crate::state::State;
use crate::store::Caller;

/// The most servers of one request.
const MAX_SERVERS: usize = 10_000;

/// What a request names. A server that it names twice counts once.
#[derive(Debug, Default)]
pub struct Selection {
    pub named: Vec<Uuid>,
    /// The servers that have this tag now.
    pub tag: Option<String>,
    /// All servers to which the caller may do it.
    pub is_all: bool,
}

/// The servers of a selection. Access is checked for each one: servers that the caller may not see do not exist for them. None is
/// an error with this text.
pub async fn select(
    state: &State,
    caller: &Caller,
    selection: Selection,
    action: Action,
    none: &'static str,
) -> Result<Vec<ServerAccess>, ApiError> {
    let usable = state.accounts.access.where_allowed(caller, action);
    let mut ids = selection.named;
    if let Some(tag) = selection.tag {
        ids.extend(state.store.servers_with_tag(&usable, &tag).await?);
    }
    if selection.is_all {
        ids.extend(state.store.all_servers(&usable).await?);
    }
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(*id));
    match ids.len() {
        0 => return Err(refuse(none)),
        1..=MAX_SERVERS => {}
        _ => return Err(refuse("At most 10,000 servers can be selected")),
    }
    let mut selected = Vec::with_capacity(ids.len());
    for id in ids {
        selected.push(state.accounts.access.server(caller, id, action).await?);
    }
    Ok(selected)
}

fn refuse(detail: &'static str) -> ApiError {
    ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
}
