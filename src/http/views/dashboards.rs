//! `/dashboards`: views in a grid.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};

use super::layout::LayoutIn;
use super::out::DashboardOut;
use super::short;
use crate::http::error::ApiError;
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{Clearable, Description, Name};
use crate::http::extract::param::PageQuery;
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use crate::http::reply::{Done, Listed};
use crate::http::task::run_detached;
use crate::store::{NewView, ViewKind, ViewPatch};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DashboardIn {
    name: Name,
    #[deserr(default)]
    description: Option<Description>,
    /// Defaults to no views.
    #[deserr(default)]
    layout: Option<LayoutIn>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DashboardPatchIn {
    #[deserr(default)]
    name: Option<Name>,
    #[deserr(default)]
    description: Clearable<Description>,
    #[deserr(default)]
    layout: Option<LayoutIn>,
}

/// List your dashboards
///
/// Sorted by name.
#[api_v2_operation(tags(Views), operation_id = "list_dashboards")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<DashboardOut>, ApiError> {
    let owner_id = ask.state.accounts.access.views_of(&ask.subject.caller);
    let found = ask.state.store.list_views(owner_id, ViewKind::Dashboard, ask.query.into()).await?;
    Ok(Listed { items: found.items.into_iter().map(DashboardOut::from).collect(), total: found.total })
}

/// Create a dashboard
///
/// A dashboard shows views in a grid of twelve columns. Only you see it.
#[api_v2_operation(tags(Views), operation_id = "create_dashboard")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<DashboardIn>>,
) -> Result<CreatedJson<DashboardOut>, ApiError> {
    let (SignedIn { caller, actor }, extract::Json(input)) = (ask.subject, ask.body);
    let new = NewView {
        owner_id: ask.state.accounts.access.views_of(&caller),
        kind: ViewKind::Dashboard,
        name: input.name.0,
        description: input.description.map(|Description(text)| text).unwrap_or_default(),
        definition: short("layout", input.layout.unwrap_or_else(LayoutIn::empty).text())?,
    };
    run_detached(async move { Ok(CreatedJson(ask.state.store.create_view(new, actor).await?.into())) }).await
}

/// Get a dashboard
#[api_v2_operation(tags(Views), operation_id = "read_dashboard")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<DashboardOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let owner_id = ask.state.accounts.access.views_of(&caller);
    let found = ask.state.store.find_view(owner_id, ViewKind::Dashboard, path.id.0).await?;
    Ok(Json(found.ok_or_else(not_found)?.into()))
}

/// Change a dashboard
///
/// Changes the given fields; null clears the description. A layout is replaced as a whole.
#[api_v2_operation(tags(Views), operation_id = "update_dashboard")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<DashboardPatchIn>>,
) -> Result<Json<DashboardOut>, ApiError> {
    let (CallerAt { caller, actor, path }, extract::Json(input)) = (ask.subject, ask.body);
    let owner_id = ask.state.accounts.access.views_of(&caller);
    let definition = input.layout.map(|layout| short("layout", layout.text())).transpose()?;
    let patch = ViewPatch {
        name: input.name.map(|Name(name)| name),
        description: input.description.change(|Description(text)| text),
        definition,
    };
    run_detached(async move {
        let changed = ask.state.store.update_view(owner_id, ViewKind::Dashboard, path.id.0, patch, actor).await?;
        Ok(Json(changed.ok_or_else(not_found)?.into()))
    })
    .await
}

/// Delete a dashboard
///
/// Its views stay.
#[api_v2_operation(tags(Views), operation_id = "delete_dashboard")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let owner_id = ask.state.accounts.access.views_of(&caller);
    let deleted =
        run_detached(
            async move { Ok(ask.state.store.delete_view(owner_id, ViewKind::Dashboard, path.id.0, actor).await?) },
        );
    if deleted.await? { Ok(Done("Dashboard deleted")) } else { Err(not_found()) }
}

fn not_found() -> ApiError {
    ApiError::not_found("Dashboard not found")
}
