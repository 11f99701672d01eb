//! Saved views, and the dashboards that are made of them. Both are a name and a definition, which the service checks and the
//! store keeps as it is. One that is shared can be read by others, and changed by its owner alone.

use std::collections::HashMap;

use entity::{Millis, user, view};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Set,
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

/// The accounts that a view or dashboard is shared with, by their role in the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedWith {
    /// Only the owner sees it.
    Nobody,
    /// All administrators.
    Administrators,
    /// All accounts.
    Everyone,
}

impl SharedWith {
    /// Every audience.
    pub const ALL: [Self; 3] = [Self::Nobody, Self::Administrators, Self::Everyone];

    /// The word that stands in the table and in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Administrators => "administrators",
            Self::Everyone => "everyone",
        }
    }
}

/// An account and the audiences that it belongs to. The rights of a caller make one.
#[derive(Debug, Clone)]
pub struct ViewReader {
    /// The account.
    pub user_id: Uuid,
    /// Its audiences.
    pub audiences: Vec<SharedWith>,
}

/// A view or dashboard and its owner's name.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedView {
    /// The row.
    pub view: View,
    /// The name; empty when the account has just been deleted.
    pub owner_name: String,
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
    /// Who else may read it.
    pub shared_with: SharedWith,
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
    /// Who else may read it.
    pub shared_with: Option<SharedWith>,
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
            shared_with: new.shared_with.word().to_owned(),
            created_at: now,
            updated_at: now,
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, view.owner_id, Quota::Views).await?;
            let row = view.clone().into_active_model().reset_all();
            view::Entity::insert(row).exec_without_returning(&transaction).await?;
            let entry = entry(kind.created(), &view, actor.clone()).detail(made(&view));
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(view.clone())
        })
        .await
    }

    /// Finds a view or dashboard that belongs to the reader or is shared with them.
    pub async fn find_view(
        &self,
        reader: &ViewReader,
        kind: ViewKind,
        id: Uuid,
    ) -> Result<Option<OwnedView>, StoreError> {
        let found = view::Entity::find_by_id(id).filter(readable(reader, kind)).one(&self.read).await?;
        Ok(self.with_owners(found.into_iter().collect()).await?.pop())
    }

    /// Lists the views or dashboards that belong to the reader or are shared with them, by name.
    pub async fn list_views(
        &self,
        reader: &ViewReader,
        kind: ViewKind,
        page: PageRequest,
    ) -> Result<Page<OwnedView>, StoreError> {
        let query = view::Entity::find().filter(readable(reader, kind));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_asc(view::Column::Name).order_by_asc(view::Column::Id);
        let found = query.limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items: self.with_owners(found).await?, total })
    }

    async fn with_owners(&self, views: Vec<View>) -> Result<Vec<OwnedView>, StoreError> {
        if views.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<(Uuid, String)> = user::Entity::find()
            .select_only()
            .columns([user::Column::Id, user::Column::Username])
            .filter(user::Column::Id.is_in(views.iter().map(|view| view.owner_id)))
            .into_tuple()
            .all(&self.read)
            .await?;
        let names: HashMap<Uuid, String> = names.into_iter().collect();
        let named = |view: View| OwnedView { owner_name: names.get(&view.owner_id).cloned().unwrap_or_default(), view };
        Ok(views.into_iter().map(named).collect())
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

fn readable(reader: &ViewReader, kind: ViewKind) -> Condition {
    let shared = view::Column::SharedWith.is_in(reader.audiences.iter().map(|audience| audience.word()));
    Condition::all()
        .add(view::Column::Kind.eq(kind.word()))
        .add(Condition::any().add(view::Column::OwnerId.eq(reader.user_id)).add(shared))
}

fn entry(action: &'static str, view: &View, actor: Actor) -> Entry {
    Entry::new(action, view.owner_id, actor).target(view.id)
}

/// The audit detail of a new one.
fn made(view: &View) -> Value {
    if view.shared_with == SharedWith::Nobody.word() {
        return json!({ "name": view.name });
    }
    json!({ "name": view.name, "shared_with": view.shared_with })
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
    if let Some(shared_with) = patch.shared_with {
        row.shared_with = Set(shared_with.word().to_owned());
    }
    row
}

/// The audit detail of a patch: of the definition, which may be long, only that it changed.
fn changes(view: &View, patch: &ViewPatch) -> Value {
    let is_redefined = patch.definition.as_ref().is_some_and(|definition| *definition != view.definition);
    let fields = [
        ("name", changed(&view.name, patch.name.as_ref())),
        ("description", changed(&view.description, patch.description.as_ref())),
        ("shared_with", changed(&view.shared_with.as_str(), patch.shared_with.map(SharedWith::word).as_ref())),
        ("definition", is_redefined.then(|| json!("replaced"))),
    ];
    let named = fields.into_iter().filter_map(|(name, change)| Some((name.to_owned(), change?)));
    named.collect::<serde_json::Map<_, _>>().into()
}
