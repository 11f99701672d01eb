use entity::{Millis, notification, notification_channel};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Set,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{changed, record_in};
use super::claims::{PARTLY, UNREACHABLE};
use super::outbox::PENDING;
use super::{Channel, Page, PageRequest, Quota, Store, StoreError, channel_tags};
use crate::audit::{Actor, Entry, action};

/// The destination of a channel, as it is stored.
#[derive(Clone)]
pub struct SealedSettings {
    /// The channel's kind, such as `email`.
    pub kind: &'static str,
    /// The encrypted settings.
    pub settings: Vec<u8>,
    /// The part of the settings that may be shown.
    pub destination: String,
}

/// A channel to insert.
#[derive(Clone)]
pub struct NewChannel {
    /// The settings are encrypted for this id only.
    pub id: Uuid,
    /// The owner.
    pub owner_id: Uuid,
    /// The name, for people.
    pub name: String,
    /// The destination.
    pub settings: SealedSettings,
    /// The severities that it receives.
    pub severities: Vec<&'static str>,
    /// The tags of the servers that it is for; empty for all servers.
    pub tags: Vec<String>,
    /// How often it repeats an alert that nobody has acknowledged, in minutes; 0 for never.
    pub repeat_minutes: i32,
    /// Whether it also receives recoveries.
    pub tells_recovery: bool,
    /// Whether it receives anything.
    pub is_enabled: bool,
}

/// The changes to a channel; `None` leaves a field unchanged.
#[derive(Clone, Default)]
pub struct ChannelPatch {
    /// The name, for people.
    pub name: Option<String>,
    /// The destination.
    pub settings: Option<SealedSettings>,
    /// The severities that it receives.
    pub severities: Option<Vec<&'static str>>,
    /// The tags of the servers that it is for; empty for all servers.
    pub tags: Option<Vec<String>>,
    /// How often it repeats an alert that nobody has acknowledged, in minutes; 0 for never.
    pub repeat_minutes: Option<i32>,
    /// Whether it also receives recoveries.
    pub tells_recovery: Option<bool>,
    /// Whether it receives anything.
    pub is_enabled: Option<bool>,
}

impl Store {
    /// Inserts a channel.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many.
    pub async fn create_channel(&self, new: NewChannel, actor: Actor) -> Result<Channel, StoreError> {
        let now = Millis::from(Timestamp::now());
        let channel = Channel {
            id: new.id,
            owner_id: new.owner_id,
            name: new.name,
            kind: new.settings.kind.to_owned(),
            settings: new.settings.settings,
            destination: new.settings.destination,
            severities: new.severities.join(","),
            tags: json!(new.tags).to_string(),
            repeat_minutes: new.repeat_minutes,
            tells_recovery: new.tells_recovery,
            is_enabled: new.is_enabled,
            created_at: now,
            updated_at: now,
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, new.owner_id, Quota::Channels).await?;
            let row = channel.clone().into_active_model().reset_all();
            notification_channel::Entity::insert(row).exec_without_returning(&transaction).await?;
            let told = json!({ "name": channel.name, "type": channel.kind, "destination": channel.destination });
            record_in(&transaction, entry(action::CHANNEL_CREATE, &channel, actor.clone()).detail(told)).await?;
            transaction.commit().await?;
            Ok(channel.clone())
        })
        .await
    }

    /// Finds a channel of an owner.
    pub async fn find_channel(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Channel>, StoreError> {
        let found = notification_channel::Entity::find_by_id(id)
            .filter(notification_channel::Column::OwnerId.eq(owner_id))
            .one(&self.read)
            .await?;
        Ok(found)
    }

    /// Lists the channels of an owner, newest first.
    pub async fn list_channels(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<Channel>, StoreError> {
        let query = notification_channel::Entity::find().filter(notification_channel::Column::OwnerId.eq(owner_id));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_desc(notification_channel::Column::Id).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    /// Changes a channel. When its destination changes, messages that could not be sent are tried there at once.
    pub async fn update_channel(
        &self,
        owner_id: Uuid,
        id: Uuid,
        patch: ChannelPatch,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Option<Channel>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = notification_channel::Entity::find_by_id(id)
                .filter(notification_channel::Column::OwnerId.eq(owner_id))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(channel) = found else { return Ok(None) };
            let detail = changes(&channel, &patch);
            let leads_elsewhere = patch.settings.is_some();
            let row =
                notification_channel::ActiveModel { updated_at: Set(now.into()), ..patched(channel, patch.clone()) };
            let channel = row.update(&transaction).await?;
            if leads_elsewhere {
                let waiting = notification::Entity::update_many()
                    .col_expr(notification::Column::NextAttemptAt, Millis::from(now).into())
                    .filter(notification::Column::ChannelId.eq(id))
                    .filter(notification::Column::Status.eq(PENDING))
                    .filter(notification::Column::NextAttemptAt.gt(Millis::from(now)))
                    // A message that is being sent at this moment keeps its claim.
                    .filter(
                        Condition::any()
                            .add(notification::Column::Hold.is_null())
                            .add(notification::Column::Hold.is_in([UNREACHABLE, PARTLY])),
                    );
                waiting.exec(&transaction).await?;
            }
            record_in(&transaction, entry(action::CHANNEL_UPDATE, &channel, actor.clone()).detail(detail)).await?;
            transaction.commit().await?;
            Ok(Some(channel))
        })
        .await
    }

    /// Removes a channel and its messages, sent or not. Returns whether it existed.
    pub async fn delete_channel(&self, owner_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let owned = notification_channel::Entity::find_by_id(id)
                .filter(notification_channel::Column::OwnerId.eq(owner_id))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(channel) = owned else { return Ok(false) };
            notification_channel::Entity::delete_by_id(id).exec(&transaction).await?;
            let told = json!({ "name": channel.name, "type": channel.kind, "destination": channel.destination });
            record_in(&transaction, entry(action::CHANNEL_DELETE, &channel, actor.clone()).detail(told)).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// The audit entry about a channel: it never contains the settings.
fn entry(action: &'static str, channel: &Channel, actor: Actor) -> Entry {
    Entry::new(action, channel.owner_id, actor).target(channel.id)
}

/// The columns that a patch names.
fn patched(channel: Channel, patch: ChannelPatch) -> notification_channel::ActiveModel {
    let mut row = channel.into_active_model();
    if let Some(name) = patch.name {
        row.name = Set(name);
    }
    if let Some(SealedSettings { kind, settings, destination }) = patch.settings {
        row.kind = Set(kind.to_owned());
        row.settings = Set(settings);
        row.destination = Set(destination);
    }
    if let Some(severities) = patch.severities {
        row.severities = Set(severities.join(","));
    }
    if let Some(tags) = patch.tags {
        row.tags = Set(json!(tags).to_string());
    }
    if let Some(minutes) = patch.repeat_minutes {
        row.repeat_minutes = Set(minutes);
    }
    if let Some(tells_recovery) = patch.tells_recovery {
        row.tells_recovery = Set(tells_recovery);
    }
    if let Some(is_enabled) = patch.is_enabled {
        row.is_enabled = Set(is_enabled);
    }
    row
}

/// The audit detail of a patch, with old and new values; of the settings only that they changed.
fn changes(channel: &Channel, patch: &ChannelPatch) -> Value {
    let settings = patch.settings.as_ref();
    let severities: Vec<&str> = channel.severities.split(',').collect();
    let fields = [
        ("name", changed(&channel.name, patch.name.as_ref())),
        ("type", changed(&channel.kind.as_str(), settings.map(|settings| settings.kind).as_ref())),
        ("settings", settings.map(|_| json!("replaced"))),
        ("destination", changed(&channel.destination, settings.map(|settings| &settings.destination))),
        ("severities", changed(&severities, patch.severities.as_ref())),
        ("tags", changed(&channel_tags(channel), patch.tags.as_ref())),
        ("repeat_minutes", changed(&channel.repeat_minutes, patch.repeat_minutes.as_ref())),
        ("notify_recovery", changed(&channel.tells_recovery, patch.tells_recovery.as_ref())),
        ("enabled", changed(&channel.is_enabled, patch.is_enabled.as_ref())),
    ];
    let named = fields.into_iter().filter_map(|(name, change)| Some((name.to_owned(), change?)));
    named.collect::<serde_json::Map<_, _>>().into()
}
