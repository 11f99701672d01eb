//! What stands where nothing carries messages and nobody asks for silence.

use signalbox_protocol::Timestamp;

use super::channel::Settings;
use super::deliver::{Deliver, Delivering, Refused, RefusedKind};
use super::message::Message;
use super::notifier::{Holding, Silences};
use crate::store::AlertToNotify;

/// Delivers nothing.
pub struct Undelivered;

impl Deliver for Undelivered {
    fn send<'a>(&'a self, _: &'a Settings, _: &'a Message) -> Delivering<'a> {
        Box::pin(async { Err(Refused::new(RefusedKind::Misconfigured, "nothing is sent by this service")) })
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        let url = reqwest::Url::parse(url).map_err(|_| "not a URL".to_owned())?;
        let is_sound = ["http", "https"].contains(&url.scheme()) && url.has_host() && url.username().is_empty();
        if is_sound { Ok(()) } else { Err("not an http or https URL with a host and without a user".to_owned()) }
    }
}

/// Nobody asks for silence.
pub struct Unsilenced;

impl Silences for Unsilenced {
    fn held_until<'a>(&'a self, _: &'a AlertToNotify, _: Timestamp) -> Holding<'a> {
        Box::pin(async { Ok(None) })
    }
}
