//! Views that others share: what a reader gets of them, and why a change of one is refused.

use std::collections::HashSet;

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use uuid::Uuid;

use super::out::ViewOut;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};
use crate::state::State;
use crate::store::{Caller, OwnedView, SharedWith, ViewKind};

/// The accounts that something is shared with.
#[derive(Debug, Clone, Copy)]
pub struct Audience(pub SharedWith);

impl Deserr<Faults> for Audience {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let given = string(value, location)?;
        let found = SharedWith::ALL.into_iter().find(|audience| audience.word() == given);
        found.map(Self).ok_or_else(|| not_a_member(&SharedWith::ALL.map(SharedWith::word), location))
    }
}

described!(Audience, json!({ "type": "string", "enum": SharedWith::ALL.map(SharedWith::word) }));

/// The views as this caller gets them. The ids of servers are left out of what others share, unless the caller sees these servers,
/// too.
pub async fn for_reader(state: &State, caller: &Caller, found: Vec<OwnedView>) -> Result<Vec<ViewOut>, ApiError> {
    let mut shown: Vec<ViewOut> = found.into_iter().map(|found| ViewOut::new(found, caller)).collect();
    let of_others = shown.iter().filter(|view| !view.is_mine()).flat_map(ViewOut::server_ids);
    let named: HashSet<Uuid> = of_others.collect();
    let named: Vec<Uuid> = named.into_iter().collect();
    let readable: HashSet<Uuid> = state.accounts.access.readable(caller, &named).await?.into_iter().collect();
    for view in shown.iter_mut().filter(|view| !view.is_mine()) {
        view.hide_servers(|id| !readable.contains(&id));
    }
    Ok(shown)
}

/// Why a caller may not change this: it belongs to somebody else, or it does not exist for the caller.
pub async fn refusal(state: &State, caller: &Caller, kind: ViewKind, id: Uuid) -> ApiError {
    let reader = state.accounts.access.views(caller);
    match (state.store.find_view(&reader, kind, id).await, kind) {
        (Ok(Some(_)), _) => {
            let detail = "Only its owner may change it: save a copy of your own";
            ApiError::Refused { code: ErrorCode::Forbidden, detail: detail.into() }
        }
        (Ok(None), ViewKind::View) => super::not_found(),
        (Ok(None), ViewKind::Dashboard) => ApiError::not_found("Dashboard not found"),
        (Err(error), _) => error.into(),
    }
}
