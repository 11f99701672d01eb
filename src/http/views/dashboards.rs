//! `/dashboards`: views in a grid.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};

use super::layout::LayoutIn;
use super::out::DashboardOut;
use super::shared::{Audience, refusal};
use super::short;
use crate::http::error::ApiError;
use crate::http::extract::cross_check::CrossChecked;
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{Clearable, Description, Name};
use crate::http::extract::param::PageQuery;
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use crate::http::reply::{Done, Listed};
use crate::http::task::run_detached;
use crate::store::{NewView, SharedWith, ViewKind, ViewPatch};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DashboardIn {
    name: Name,
    #[deserr(default)]
    description: Option<Description>,
    /// Defaults to no views.
    #[deserr(default)]
    layout: Option<CrossChecked<LayoutIn>>,
    /// Who else may see the dashboard. Defaults to `nobody`.
    #[deserr(default)]
    shared_with: Option<Audience>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DashboardPatchIn {
    #[deserr(default)]
    name: Option<Name>,
    #[deserr(default)]
    description: Clearable<Description>,
    #[deserr(default)]
    layout: Option<CrossChecked<LayoutIn>>,
    /// Who else may see the dashboard.
    #[deserr(default)]
    shared_with: Option<Audience>,
}

/// List dashboards
///
/// Your own and those that others share with you, sorted by name.
#[api_v2_operation(tags(Views), operation_id = "list_dashboards")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<DashboardOut>, ApiError> {
    let caller = &ask.subject.caller;
    let reader = ask.state.accounts.access.views(caller);
    let found = ask.state.store.list_views(&reader, ViewKind::Dashboard, ask.query.into()).await?;
    let items = found.items.into_iter().map(|found| DashboardOut::new(found, caller));
    Ok(Listed { items: items.collect(), total: found.total })
}

/// Create a dashboard
///
/// A dashboard shows views in a grid of twelve columns. Others see one that is shared with them, and in it the views that are
/// shared, too; the others have an empty place there.
#[api_v2_operation(tags(Views), operation_id = "create_dashboard")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<DashboardIn>>,
) -> Result<CreatedJson<DashboardOut>, ApiError> {
    let (SignedIn { caller, actor }, extract::Json(input)) = (ask.subject, ask.body);
    let new = NewView {
        owner_id: caller.user_id,
        kind: ViewKind::Dashboard,
        name: input.name.0,
        description: input.description.map(|Description(text)| text).unwrap_or_default(),
        definition: short("layout", input.layout.map_or_else(LayoutIn::empty, |CrossChecked(layout)| layout).text())?,
        shared_with: input.shared_with.map_or(SharedWith::Nobody, |Audience(audience)| audience),
    };
    run_detached(async move {
        let made = ask.state.store.create_view(new, actor).await?;
        Ok(CreatedJson(DashboardOut::own(made, &caller)))
    })
    .await
}

/// Get a dashboard
#[api_v2_operation(tags(Views), operation_id = "read_dashboard")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<DashboardOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let reader = ask.state.accounts.access.views(&caller);
    let found = ask.state.store.find_view(&reader, ViewKind::Dashboard, path.id.0).await?;
    let found = found.ok_or_else(|| ApiError::not_found("Dashboard not found"))?;
    Ok(Json(DashboardOut::new(found, &caller)))
}

/// Change a dashboard
///
/// Changes the given fields; null clears the description. A layout is replaced as a whole. Only the owner may change
/// a dashboard that is shared.
#[api_v2_operation(tags(Views), operation_id = "update_dashboard")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<DashboardPatchIn>>,
) -> Result<Json<DashboardOut>, ApiError> {
    let (CallerAt { caller, actor, path }, extract::Json(input)) = (ask.subject, ask.body);
    let definition = input.layout.map(|CrossChecked(layout)| short("layout", layout.text())).transpose()?;
    let patch = ViewPatch {
        name: input.name.map(|Name(name)| name),
        description: input.description.change(|Description(text)| text),
        definition,
        shared_with: input.shared_with.map(|Audience(audience)| audience),
    };
    run_detached(async move {
        let changed = ask.state.store.update_view(caller.user_id, ViewKind::Dashboard, path.id.0, patch, actor).await?;
        match changed {
            Some(dashboard) => Ok(Json(DashboardOut::own(dashboard, &caller))),
            None => Err(refusal(&ask.state, &caller, ViewKind::Dashboard, path.id.0).await),
        }
    })
    .await
}

/// Delete a dashboard
///
/// Its views stay.
#[api_v2_operation(tags(Views), operation_id = "delete_dashboard")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    run_detached(async move {
        if ask.state.store.delete_view(caller.user_id, ViewKind::Dashboard, path.id.0, actor).await? {
            return Ok(Done("Dashboard deleted"));
        }
        Err(refusal(&ask.state, &caller, ViewKind::Dashboard, path.id.0).await)
    })
    .await
}
