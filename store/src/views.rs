//! Saved views, and the dashboards that are made of them. Both are a name and a definition, which the service checks and the
//! store keeps as it is.

use entity::{Millis, view};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    Set,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{changed, record_in};
use super::{Page, PageRequest, Quota, Store, StoreError, View};
use crate::audit::{Actor, Entry, action};

/// What is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewKind {
    /// One chart of series.
    View,
    /// Views in a grid.
    Dashboard,
}

impl ViewKind {
    fn word(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Dashboard => "dashboard",
        }
    }

    fn created(self) -> &'static str {
        match self {
            Self::View => action::VIEW_CREATE,
            Self::Dashboard => action::DASHBOARD_CREATE,
        }
    }

    fn updated(self) -> &'static str {
        match self {
            Self::View => action::VIEW_UPDATE,
            Self::Dashboard => action::DASHBOARD_UPDATE,
        }
    }

    fn deleted(self) -> &'static str {
        match self {
            Self::View => action::VIEW_DELETE,
            Self::Dashboard => action::DASHBOARD_DELETE,
        }
    }
}

/// A view or dashboard to insert.
#[derive(Debug, Clone)]
pub struct NewView {
    /// The owner.
    pub owner_id: Uuid,
    /// What it is.
    pub kind: ViewKind,
    /// The name, for people.
    pub name: String,
    /// The description, for people.
    pub description: String,
    /// What it shows, as JSON.
    pub definition: String,
}

/// The changes to a view or dashboard; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ViewPatch {
    /// The name, for people.
    pub name: Option<String>,
    /// The description, for people.
    pub description: Option<String>,
    /// What it shows, as JSON.
    pub definition: Option<String>,
}

impl Store {
    /// Inserts a view or dashboard.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many.
    pub async fn create_view(&self, new: NewView, actor: Actor) -> Result<View, StoreError> {
        let now = Millis::from(Timestamp::now());
        let kind = new.kind;
        let view = View {
            id: Uuid::now_v7(),
            owner_id: new.owner_id,
            kind: kind.word().to_owned(),
            name: new.name,
            description: new.description,
            definition: new.definition,
            created_at: now,
            updated_at: now,
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, view.owner_id, Quota::Views).await?;
            let row = view.clone().into_active_model().reset_all();
            view::Entity::insert(row).exec_without_returning(&transaction).await?;
            let entry = entry(kind.created(), &view, actor.clone()).detail(json!({ "name": view.name }));
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(view.clone())
        })
        .await
    }

    /// Finds a view or dashboard of an owner.
    pub async fn find_view(&self, owner_id: Uuid, kind: ViewKind, id: Uuid) -> Result<Option<View>, StoreError> {
        let found = view::Entity::find_by_id(id)
            .filter(view::Column::OwnerId.eq(owner_id))
            .filter(view::Column::Kind.eq(kind.word()));
        Ok(found.one(&self.read).await?)
    }

    /// Lists the views or dashboards of an owner by name.
    pub async fn list_views(
        &self,
        owner_id: Uuid,
        kind: ViewKind,
        page: PageRequest,
    ) -> Result<Page<View>, StoreError> {
        let query =
            view::Entity::find().filter(view::Column::OwnerId.eq(owner_id)).filter(view::Column::Kind.eq(kind.word()));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_asc(view::Column::Name).order_by_asc(view::Column::Id);
        let items = query.limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// Changes a view or dashboard. None if it does not exist.
    pub async fn update_view(
        &self,
        owner_id: Uuid,
        kind: ViewKind,
        id: Uuid,
        patch: ViewPatch,
        actor: Actor,
    ) -> Result<Option<View>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = view::Entity::find_by_id(id)
                .filter(view::Column::OwnerId.eq(owner_id))
                .filter(view::Column::Kind.eq(kind.word()))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(view) = found else { return Ok(None) };
            let detail = changes(&view, &patch);
            let row = view::ActiveModel { updated_at: Set(Timestamp::now().into()), ..patched(view, patch.clone()) };
            let view = row.update(&transaction).await?;
            record_in(&transaction, entry(kind.updated(), &view, actor.clone()).detail(detail)).await?;
            transaction.commit().await?;
            Ok(Some(view))
        })
        .await
    }

    /// Deletes a view or dashboard. Returns whether it existed.
    pub async fn delete_view(
        &self,
        owner_id: Uuid,
        kind: ViewKind,
        id: Uuid,
        actor: Actor,
    ) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = view::Entity::find_by_id(id)
                .filter(view::Column::OwnerId.eq(owner_id))
                .filter(view::Column::Kind.eq(kind.word()))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(view) = found else { return Ok(false) };
            // Another request was faster, and has written the entry.
            if view::Entity::delete_by_id(id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            let entry = entry(kind.deleted(), &view, actor.clone()).detail(json!({ "name": view.name }));
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

fn entry(action: &'static str, view: &View, actor: Actor) -> Entry {
    Entry::new(action, view.owner_id, actor).target(view.id)
}

/// The columns that a patch names.
fn patched(view: View, patch: ViewPatch) -> view::ActiveModel {
    let mut row = view.into_active_model();
    if let Some(name) = patch.name {
        row.name = Set(name);
    }
    if let Some(description) = patch.description {
        row.description = Set(description);
    }
    if let Some(definition) = patch.definition {
        row.definition = Set(definition);
    }
    row
}

/// The audit detail of a patch: of the definition, which may be long, only that it changed.
fn changes(view: &View, patch: &ViewPatch) -> Value {
    let is_redefined = patch.definition.as_ref().is_some_and(|definition| *definition != view.definition);
    let fields = [
        ("name", changed(&view.name, patch.name.as_ref())),
        ("description", changed(&view.description, patch.description.as_ref())),
        ("definition", is_redefined.then(|| json!("replaced"))),
    ];
    let named = fields.into_iter().filter_map(|(name, change)| Some((name.to_owned(), change?)));
    named.collect::<serde_json::Map<_, _>>().into()
}
