//! `/views` and `/dashboards`: saved charts of series, and pages that are made of them.

pub(super) mod dashboards;
mod definition;
mod layout;
mod out;
mod shared;

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete as remove, get, post, put};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};

use super::error::ApiError;
use super::extract::cross_check::CrossChecked;
use super::extract::fault::{Faults, Part};
use super::extract::field::{Clearable, Description, Name};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use super::path::at;
use super::reply::{Done, Listed, fault_of};
use super::task::run_detached;
use crate::store::{NewView, SharedWith, ViewKind, ViewPatch};
use definition::DefinitionIn;
use out::ViewOut;
use shared::{Audience, for_reader, refusal};

/// The longest definition that is saved, in bytes.
const MAX_DEFINITION: usize = 16 * 1024;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ViewIn {
    name: Name,
    #[deserr(default)]
    description: Option<Description>,
    definition: CrossChecked<DefinitionIn>,
    /// Who else may see the view. Defaults to `nobody`.
    #[deserr(default)]
    shared_with: Option<Audience>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ViewPatchIn {
    #[deserr(default)]
    name: Option<Name>,
    #[deserr(default)]
    description: Clearable<Description>,
    #[deserr(default)]
    definition: Option<CrossChecked<DefinitionIn>>,
    /// Who else may see the view.
    #[deserr(default)]
    shared_with: Option<Audience>,
}

/// List views
///
/// Your own and those that others share with you, sorted by name.
#[api_v2_operation(tags(Views), operation_id = "list_views")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<ViewOut>, ApiError> {
    let caller = &ask.subject.caller;
    let reader = ask.state.accounts.access.views(caller);
    let found = ask.state.store.list_views(&reader, ViewKind::View, ask.query.into()).await?;
    Ok(Listed { items: for_reader(&ask.state, caller, found.items).await?, total: found.total })
}

/// Save a view
///
/// A view is a chart of series of your servers: what `GET /metrics/fleet/series` is asked, with a name.
/// `shared_with` lets others see it, who see the same series of their own servers.
#[api_v2_operation(tags(Views), operation_id = "create_view")]
pub async fn create(ask: Checked<SignedIn, NoQuery, extract::Json<ViewIn>>) -> Result<CreatedJson<ViewOut>, ApiError> {
    let (SignedIn { caller, actor }, extract::Json(input)) = (ask.subject, ask.body);
    let new = NewView {
        owner_id: caller.user_id,
        kind: ViewKind::View,
        name: input.name.0,
        description: input.description.map(|Description(text)| text).unwrap_or_default(),
        definition: short("definition", input.definition.0.text())?,
        shared_with: input.shared_with.map_or(SharedWith::Nobody, |Audience(audience)| audience),
    };
    run_detached(async move {
        let made = ask.state.store.create_view(new, actor).await?;
        Ok(CreatedJson(ViewOut::own(made, &caller)))
    })
    .await
}

/// Get a view
///
/// `servers` of a view of somebody else names only servers that are yours; `hidden_servers` is the number of the others.
#[api_v2_operation(tags(Views), operation_id = "read_view")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ViewOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let reader = ask.state.accounts.access.views(&caller);
    let found = ask.state.store.find_view(&reader, ViewKind::View, path.id.0).await?;
    let shown = for_reader(&ask.state, &caller, vec![found.ok_or_else(not_found)?]).await?.pop();
    Ok(Json(shown.ok_or_else(not_found)?))
}

/// Change a view
///
/// Changes the given fields; null clears the description. A definition is replaced as a whole. Only the owner may change a
/// view that is shared.
#[api_v2_operation(tags(Views), operation_id = "update_view")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<ViewPatchIn>>,
) -> Result<Json<ViewOut>, ApiError> {
    let (CallerAt { caller, actor, path }, extract::Json(input)) = (ask.subject, ask.body);
    let definition =
        input.definition.map(|CrossChecked(definition)| short("definition", definition.text())).transpose()?;
    let patch = ViewPatch {
        name: input.name.map(|Name(name)| name),
        description: input.description.change(|Description(text)| text),
        definition,
        shared_with: input.shared_with.map(|Audience(audience)| audience),
    };
    run_detached(async move {
        let changed = ask.state.store.update_view(caller.user_id, ViewKind::View, path.id.0, patch, actor).await?;
        match changed {
            Some(view) => Ok(Json(ViewOut::own(view, &caller))),
            None => Err(refusal(&ask.state, &caller, ViewKind::View, path.id.0).await),
        }
    })
    .await
}

/// Delete a view
///
/// Dashboards that show it have an empty place then.
#[api_v2_operation(tags(Views), operation_id = "delete_view")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    run_detached(async move {
        if ask.state.store.delete_view(caller.user_id, ViewKind::View, path.id.0, actor).await? {
            return Ok(Done("View deleted"));
        }
        Err(refusal(&ask.state, &caller, ViewKind::View, path.id.0).await)
    })
    .await
}

/// Returns the text of a definition, unless it is too long.
fn short(field: &str, text: String) -> Result<String, ApiError> {
    if text.len() <= MAX_DEFINITION {
        return Ok(text);
    }
    let msg = format!("ensure this value has at most {MAX_DEFINITION} bytes");
    Err(ApiError::Invalid(fault_of(field, "value_error.any_str.max_length", &msg).within(Part::Body)))
}

fn not_found() -> ApiError {
    ApiError::not_found("View not found")
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/views").route(get().to(list)).route(post().to(create)),
        at("/views/{id}").route(get().to(read)).route(put().to(update)).route(remove().to(delete)),
        at("/dashboards").route(get().to(dashboards::list)).route(post().to(dashboards::create)),
        at("/dashboards/{id}")
            .route(get().to(dashboards::read))
            .route(put().to(dashboards::update))
            .route(remove().to(dashboards::delete)),
    ]
}
