//! A store with an owner and a server, alerts that come and go, and a deliverer that the test controls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use signalbox::audit::Actor;
use signalbox::auth::access::Access;
use signalbox::clock::Clock;
use signalbox::cluster::Cluster;
use signalbox::config::Config;
use signalbox::feeds::Feeds;
use signalbox::notify::channel::Settings;
use signalbox::notify::deliver::{Deliver, Delivering};
use signalbox::notify::hand_over::HandOver;
use signalbox::notify::message::Message;
use signalbox::notify::pace::Pace;
use signalbox::notify::seal::Sealer;
use signalbox::notify::sender::{Receipt, Refused};
use signalbox::notify::senders::OnlySender;
use signalbox::notify::{Notifier, Parts};
use signalbox::store::{
    Alert, AlertAudience, AlertChange, AlertToNotify, Attempt, Channel, ChannelPatch, Claim, Delivery, DeliveryFilter,
    NewChannel, PageRequest, Progress, SealedSettings, Share, Standing, Store,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::{Storage, eventually, rows};

pub const KEY: &str = "a key that only this test knows";

pub struct Scene {
    storage: Storage,
    pub store: Store,
    pub owner_id: Uuid,
    pub server_id: Uuid,
}

pub fn sealer(key: &str) -> Sealer {
    Sealer::new(&key.into()).unwrap()
}

/// Retries within moments, and gathers nothing.
pub fn pace() -> Pace {
    Pace {
        first_grouping: Duration::ZERO,
        grouping: Duration::ZERO,
        first_retry: Duration::from_millis(10),
        longest_retry: Duration::from_millis(20),
        ..Pace::default()
    }
}

impl Scene {
    pub async fn set() -> Self {
        let storage = Storage::fresh().await;
        let store = storage.store().await;
        let owner_id = rows::owner(&store).await;
        let server_id = rows::server(&store, owner_id, "web-1", "production").await;
        Self { storage, store, owner_id, server_id }
    }

    pub async fn channel(&self, name: &str) -> Channel {
        self.channel_with(name, |_| {}).await
    }

    pub async fn channel_with(&self, name: &str, adjust: impl FnOnce(&mut NewChannel)) -> Channel {
        let id = Uuid::now_v7();
        let settings = Settings::Slack { url: "https://hooks.invalid/secret".to_owned() };
        let mut new = NewChannel {
            id,
            owner_id: self.owner_id,
            name: name.to_owned(),
            settings: SealedSettings {
                kind: settings.kind(),
                settings: sealer(KEY).seal(id, &settings).unwrap(),
                destination: settings.destination(),
            },
            severities: vec!["info", "warning", "critical"],
            tags: Vec::new(),
            repeat_minutes: 0,
            tells_recovery: true,
            is_enabled: true,
        };
        adjust(&mut new);
        self.store.create_channel(new, Actor::command_line()).await.unwrap()
    }

    /// An alert that opens now.
    pub async fn open(&self, message: &str) -> Alert {
        self.open_with(message, |_| {}).await
    }

    pub async fn open_with(&self, message: &str, adjust: impl FnOnce(&mut Alert)) -> Alert {
        let mut alert = self.alert(message);
        adjust(&mut alert);
        let opened = AlertChange::Opened {
            alert: Box::new(alert),
            audience: AlertAudience { tags: vec!["production".to_owned()], viewers: Vec::new() },
        };
        self.store.change_alerts(&[opened]).await.unwrap().remove(0).unwrap()
    }

    pub fn alert(&self, message: &str) -> Alert {
        let message = message.to_owned();
        Alert { message, ..rows::alert(self.owner_id, self.server_id, Uuid::now_v7()) }
    }

    pub async fn recover(&self, alert: &Alert) {
        let now = Timestamp::now();
        let resolved = AlertChange::Resolved { id: alert.id, by: "recovery", sample_at: now, at: now };
        self.store.change_alerts(&[resolved]).await.unwrap().remove(0).unwrap();
    }

    /// Makes messages due now that wait for a later attempt, as when a channel's settings are replaced.
    pub async fn make_due(&self) {
        for delivery in self.outbox().await {
            let channel_id = delivery.notification.channel_id;
            let channel = self.store.find_channel(self.owner_id, channel_id).await.unwrap().unwrap();
            let kind = if channel.kind == "email" { "email" } else { "slack" };
            let settings = SealedSettings { kind, settings: channel.settings, destination: channel.destination };
            let patch = ChannelPatch { settings: Some(settings), ..ChannelPatch::default() };
            let (actor, now) = (Actor::command_line(), Timestamp::now());
            self.store.update_channel(self.owner_id, channel_id, patch, actor, now).await.unwrap();
        }
    }

    /// Everything in the outbox, oldest first.
    pub async fn outbox(&self) -> Vec<Delivery> {
        let page = PageRequest { limit: 500, offset: 0 };
        let mut items = self.store.list_deliveries(self.owner_id, DeliveryFilter::default(), page).await.unwrap().items;
        items.reverse();
        items
    }

    /// Its notifications, as `channel event subject status`.
    pub async fn told(&self) -> Vec<String> {
        let line = |delivery: &Delivery| {
            let row = &delivery.notification;
            format!("{} {} {} {}", delivery.channel_name, row.event, row.subject, row.status)
        };
        self.outbox().await.iter().map(line).collect()
    }

    /// Waits until nothing is pending.
    pub async fn emptied(&self) -> Vec<Delivery> {
        eventually("nothing is pending", || async {
            let outbox = self.outbox().await;
            outbox.iter().all(|delivery| delivery.notification.status != "pending").then_some(outbox)
        })
        .await
    }

    /// Claims the next message of a channel for a minute.
    pub async fn claimed(&self, channel: &Channel, now: Timestamp, most: u64) -> Option<Claim> {
        self.store.claim(channel.id, now, now.plus_millis(60_000), most).await.unwrap()
    }

    /// Records the result of an attempt that changed nothing about the recipients.
    pub async fn concluded(&self, claim: &Claim, attempt: &Attempt, now: Timestamp) {
        self.store.conclude(claim, attempt, &claim.progress(), now).await.unwrap();
    }

    /// Delivers everything that is due on every channel.
    pub async fn deliver(&self, now: Timestamp) {
        for due in self.store.channels_due(&Share::All).await.unwrap() {
            while let Some(claim) = self.store.claim(due.channel_id, now, now.plus_millis(1), 100).await.unwrap() {
                let (sent, everybody) = (Attempt::Sent { error: None }, Progress::default());
                self.store.conclude(&claim, &sent, &everybody, now).await.unwrap();
            }
        }
    }

    /// The alerts that are due for a check.
    pub async fn due(&self, now: Timestamp) -> Vec<AlertToNotify> {
        self.store.alerts_to_notify(&Share::All, now, 10).await.unwrap()
    }

    pub fn notifier(&self, deliver: &Fake, pace: Pace) -> Notifier {
        Notifier::start(parts(self.store.clone(), deliver, pace))
    }

    pub fn config(&self) -> Config {
        self.storage.config()
    }
}

pub fn parts(store: Store, deliver: &Fake, pace: Pace) -> Parts {
    let (access, silences) = (Access::without_grants(store.clone(), Feeds::default()), Arc::new(store.clone()));
    let (deliver, shards) = (Arc::new(deliver.clone()), Cluster::alone().shards);
    let clock = Clock::default();
    let senders = Box::new(OnlySender);
    Parts { store, access, sealer: sealer(KEY), deliver, silences, pace, clock, shards, senders }
}

/// The reaction of a destination.
#[derive(Debug, Clone)]
pub enum Reply {
    Take,
    Refuse(Refused),
    /// Says nothing at all.
    Hang,
    /// Is handed the message, and never answers.
    Swallow,
}

type Replies = dyn Fn(&Message, usize) -> Reply + Send + Sync;

/// A deliverer whose destinations the test controls.
#[derive(Clone)]
pub struct Fake(Arc<Mutex<Inner>>);

struct Inner {
    seen: Vec<Message>,
    replies: Box<Replies>,
}

impl Fake {
    /// `replies` gets a message and how many there were before.
    pub fn new(replies: impl Fn(&Message, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self(Arc::new(Mutex::new(Inner { seen: Vec::new(), replies: Box::new(replies) })))
    }

    pub fn taking() -> Self {
        Self::new(|_, _| Reply::Take)
    }

    pub fn now(&self, replies: impl Fn(&Message, usize) -> Reply + Send + Sync + 'static) {
        self.0.lock().unwrap().replies = Box::new(replies);
    }

    pub fn seen(&self) -> Vec<Message> {
        self.0.lock().unwrap().seen.clone()
    }

    /// The messages, as soon as there are this many.
    pub async fn saw(&self, count: usize) -> Vec<Message> {
        eventually("enough messages came", || async {
            let seen = self.seen();
            (seen.len() >= count).then_some(seen)
        })
        .await
    }

    /// For each channel the subjects of its messages.
    pub fn by_channel(&self) -> BTreeMap<String, Vec<Vec<String>>> {
        let mut channels: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for message in self.seen() {
            channels.entry(message.channel.clone()).or_default().push(subjects(&message));
        }
        channels
    }
}

/// The content of a message, as `event subject`.
pub fn subjects(message: &Message) -> Vec<String> {
    let line = |item: &signalbox::notify::message::Item| {
        let subject = item.alert.as_ref().map_or("", |alert| alert.message.as_str());
        format!("{} {subject}", item.event.word())
    };
    message.items.iter().map(line).collect()
}

impl Deliver for Fake {
    fn send<'a>(
        &'a self,
        settings: &'a Settings,
        message: &'a Message,
        before: &'a Progress,
        hand_over: &'a dyn HandOver,
    ) -> Delivering<'a> {
        let destination = settings.destination();
        if !before.is_left(&destination) {
            let receipt = Receipt { detail: format!("{destination} never answered"), progress: before.clone() };
            return Box::pin(std::future::ready(Ok(receipt)));
        }
        let reply = {
            let mut inner = self.0.lock().unwrap();
            let reply = (inner.replies)(message, inner.seen.len());
            inner.seen.push(message.clone());
            reply
        };
        Box::pin(async move {
            let mut progress = before.clone();
            match reply {
                Reply::Take => {
                    progress.set(&destination, Standing::Delivered);
                    Ok(Receipt { detail: "took it".to_owned(), progress })
                }
                Reply::Refuse(refused) => Err(refused.with(progress)),
                Reply::Hang => std::future::pending().await,
                Reply::Swallow => {
                    progress.hand_over(&destination);
                    assert!(hand_over.begins(&progress).await, "it is ours");
                    std::future::pending().await
                }
            }
        })
    }

    fn push_key(&self) -> Option<&str> {
        None
    }

    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}
