//! `/notifications/channels`.

use std::fmt::Write;

use actix_web::web::Json;
use deserr::ValuePointerRef;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use uuid::Uuid;

use super::fields::{ChannelOut, ChannelPatchIn, NewChannelIn, NewChannelOut, PatchIn, RepeatMinutes};
use super::settings::Kind;
use crate::auth::Caller;
use crate::change::Change;
use crate::effects;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::fault::{Faults, Part};
use crate::http::extract::field::{Name, Number, Tags};
use crate::http::extract::param::PageQuery;
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use crate::http::reply::{Done, Listed};
use crate::notify::channel::Settings;
use crate::notify::format::{check_endpoint, topic_of};
use crate::notify::{Notifier, TestError};
use crate::random;
use crate::state::State;
use crate::store::{Channel, ChannelPatch, NewChannel, SealedSettings};

/// The result of a test.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ChannelTestOut {
    delivered: bool,
    /// What the destination answered, or why it was not reached. The delivery log has the same text.
    detail: String,
}

/// List your channels
///
/// Newest first, without their settings.
#[api_v2_operation(tags(Notifications), operation_id = "list_notification_channels")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<ChannelOut>, ApiError> {
    let page = ask.state.store.list_channels(ask.subject.caller.user_id, ask.query.into()).await?;
    let items = page.items.into_iter().map(|channel| told(&ask.state.notifier, channel)).collect();
    Ok(Listed { items, total: page.total })
}

/// Create a channel
///
/// New alerts are sent to it. An e-mail channel may have only the address of your own account; administrators may use
/// any address.
#[api_v2_operation(tags(Notifications), operation_id = "create_notification_channel")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<NewChannelIn>>,
) -> Result<CreatedJson<NewChannelOut>, ApiError> {
    let extract::Json(NewChannelIn { given, mut settings }) = ask.body;
    let SignedIn { caller, actor } = ask.subject;
    let secret = fill_in_secret(&mut settings)?;
    check(&ask.state, &caller, &settings).await?;
    let id = Uuid::now_v7();
    let new = NewChannel {
        id,
        owner_id: caller.user_id,
        settings: seal(&ask.state.notifier, id, &settings)?,
        name: given.name.0,
        severities: given.severities.unwrap_or_default().0,
        tags: given.tags.unwrap_or_default().0,
        repeat_minutes: given.repeat_minutes.map_or(0, minutes),
        tells_recovery: given.notify_recovery.unwrap_or(true),
        is_enabled: given.enabled.unwrap_or(true),
    };
    let channel = ask.state.store.create_channel(new, actor).await?;
    Ok(CreatedJson(NewChannelOut { channel: told(&ask.state.notifier, channel), secret }))
}

/// Get a channel
#[api_v2_operation(tags(Notifications), operation_id = "read_notification_channel")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ChannelOut>, ApiError> {
    let channel = find(&ask.state, &ask.subject).await?;
    Ok(Json(told(&ask.state.notifier, channel)))
}

/// Change a channel
///
/// Changes the given fields; null resets `severities` to all and clears `tags`. If the settings are replaced,
/// notifications that could not be sent are retried immediately.
#[api_v2_operation(tags(Notifications), operation_id = "update_notification_channel")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<PatchIn>>,
) -> Result<Json<ChannelOut>, ApiError> {
    let extract::Json(PatchIn(given)) = ask.body;
    let channel = find(&ask.state, &ask.subject).await?;
    let CallerAt { caller, actor, path } = ask.subject;
    let patch = patch(&ask.state, &caller, &channel, given).await?;
    let now = ask.state.clock.now();
    let updated = ask.state.store.update_channel(caller.user_id, path.id.0, patch, actor, now).await?;
    let channel = updated.ok_or_else(gone)?;
    effects::commit(&ask.state, Change::NotificationsChanged).await;
    Ok(Json(told(&ask.state.notifier, channel)))
}

/// Delete a channel
///
/// Notifications that wait for it are dropped.
#[api_v2_operation(tags(Notifications), operation_id = "delete_notification_channel")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let existed = ask.state.store.delete_channel(caller.user_id, path.id.0, actor).await?;
    if existed { Ok(Done("Channel deleted")) } else { Err(gone()) }
}

/// Test a channel
///
/// Sends one message now, and returns the result. A channel can be tested every few seconds.
#[api_v2_operation(tags(Notifications), operation_id = "test_notification_channel")]
pub async fn test(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ChannelTestOut>, ApiError> {
    let channel = find(&ask.state, &ask.subject).await?;
    let CallerAt { actor, .. } = ask.subject;
    // In a separate task: a client that disconnects must not leave a test behind that never ends.
    let tested = actix_web::rt::spawn(async move { ask.state.notifier.test(channel, actor).await });
    let tested = tested.await.map_err(ApiError::internal)?.map_err(|error| match error {
        TestError::Busy => ApiError::Refused { code: ErrorCode::BadRequest, detail: error.to_string().into() },
        TestError::Store(error) => error.into(),
    })?;
    Ok(Json(ChannelTestOut { delivered: tested.is_delivered, detail: tested.detail }))
}

async fn find(state: &State, subject: &CallerAt<IdPath>) -> Result<Channel, ApiError> {
    state.store.find_channel(subject.caller.user_id, subject.path.id.0).await?.ok_or_else(gone)
}

fn gone() -> ApiError {
    ApiError::not_found("Channel not found")
}

fn refused(detail: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
}

fn told(notifier: &Notifier, channel: Channel) -> ChannelOut {
    let problem = notifier.open(&channel).err().map(|error| error.to_string());
    ChannelOut::new(channel, problem)
}

fn seal(notifier: &Notifier, id: Uuid, settings: &Settings) -> Result<SealedSettings, ApiError> {
    let sealed = notifier.seal(id, settings).map_err(ApiError::internal)?;
    Ok(SealedSettings { kind: settings.kind(), settings: sealed, destination: settings.destination() })
}

fn minutes(Number(minutes): RepeatMinutes) -> i32 {
    i32::try_from(minutes).unwrap_or(i32::MAX)
}

async fn patch(
    state: &State,
    caller: &Caller,
    channel: &Channel,
    given: ChannelPatchIn,
) -> Result<ChannelPatch, ApiError> {
    let settings = match changed_settings(&state.notifier, channel, &given.kind, given.settings)? {
        None => None,
        Some(settings) => {
            check(state, caller, &settings).await?;
            Some(seal(&state.notifier, channel.id, &settings)?)
        }
    };
    Ok(ChannelPatch {
        settings,
        name: given.name.map(|Name(name)| name),
        severities: given.severities.change(|severities| severities).map(|severities| severities.0),
        tags: given.tags.change(|Tags(tags)| tags),
        repeat_minutes: given.repeat_minutes.map(minutes),
        tells_recovery: given.notify_recovery,
        is_enabled: given.enabled,
    })
}

/// The new settings; `None` if they stay as they are.
fn changed_settings(
    notifier: &Notifier,
    channel: &Channel,
    kind: &Option<Kind>,
    raw: Option<super::settings::RawSettings>,
) -> Result<Option<Settings>, ApiError> {
    let kind =
        kind.or_else(|| Kind::of(&channel.kind)).ok_or_else(|| ApiError::internal("a channel without a kind"))?;
    let Some(raw) = raw else {
        // Another kind needs other settings.
        return if kind.0 == channel.kind { Ok(None) } else { Err(missing(&["settings"])) };
    };
    let settings = raw.parse(kind, ValuePointerRef::Origin.push_key("settings"));
    let mut settings = settings.map_err(|faults| ApiError::Invalid(faults.within(Part::Body)))?;
    if let Settings::Webhook { secret, .. } = &mut settings
        && secret.is_empty()
    {
        match notifier.open(channel) {
            Ok(Settings::Webhook { secret: kept, .. }) => *secret = kept,
            // There is no secret to keep, and this response cannot show a new one.
            _ => return Err(missing(&["settings", "secret"])),
        }
    }
    Ok(Some(settings))
}

fn missing(path: &[&str]) -> ApiError {
    fault(path, "value_error.missing", "field required")
}

fn fault(path: &[&str], kind: &str, msg: &str) -> ApiError {
    let faults = match path {
        [first, second] => {
            let outer = ValuePointerRef::Origin.push_key(first);
            Faults::at(outer.push_key(second), kind, msg)
        }
        [first] => Faults::at(ValuePointerRef::Origin.push_key(first), kind, msg),
        _ => Faults::at(ValuePointerRef::Origin, kind, msg),
    };
    ApiError::Invalid(faults.within(Part::Body))
}

/// Checks whether this user may have a channel with this destination.
async fn check(state: &State, caller: &Caller, settings: &Settings) -> Result<(), ApiError> {
    if let Some(url) = settings.url() {
        let sound = state.notifier.check_url(url);
        let field = if matches!(settings, Settings::Push { .. }) { "endpoint" } else { "url" };
        sound.map_err(|why| fault(&["settings", field], "value_error.url", &why))?;
    }
    if let Settings::Push { endpoint, .. } = settings {
        if state.notifier.push_key().is_none() {
            return Err(refused("This service sends no push messages: it was started without --push-key-file"));
        }
        check_endpoint(endpoint)
            .map_err(|why| fault(&["settings", "endpoint"], "value_error.url", &why.to_string()))?;
    }
    if let Settings::Ntfy { url, .. } = settings {
        topic_of(url).map_err(|why| fault(&["settings", "url"], "value_error.url", &why.to_string()))?;
    }
    let Settings::Email { to } = settings else { return Ok(()) };
    if state.config.smtp_url.is_none() {
        return Err(refused("This service sends no e-mail: it was started without --smtp-url"));
    }
    if caller.is_admin {
        return Ok(());
    }
    let user = state.store.find_user(caller.user_id).await?.ok_or(ApiError::code(ErrorCode::TokenRevoked))?;
    if to.iter().all(|address| address.to_lowercase() == user.email_key) {
        return Ok(());
    }
    let detail = "Only administrators may use addresses other than that of their own account";
    Err(ApiError::Refused { code: ErrorCode::Forbidden, detail: detail.into() })
}

/// Generates a webhook's secret if none is given, and returns the new secret.
fn fill_in_secret(settings: &mut Settings) -> Result<Option<String>, ApiError> {
    let Settings::Webhook { secret, .. } = settings else { return Ok(None) };
    if !secret.is_empty() {
        return Ok(None);
    }
    let bytes = random::bytes::<32>().map_err(ApiError::internal)?;
    for byte in bytes {
        write!(secret, "{byte:02x}").map_err(ApiError::internal)?;
    }
    Ok(Some(secret.clone()))
}
