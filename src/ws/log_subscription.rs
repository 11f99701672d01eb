//! A dashboard that watches one log.

use actix_web::{HttpRequest, HttpResponse, web};

use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::feeds::Topic;
use crate::logs::{Rest, Watcher};
use crate::state::State;

/// A socket that shows a log.
pub type LogSubscription = Dashboard<LiveLog>;

/// The log that a socket shows.
pub struct LiveLog {
    watcher: Watcher,
}

/// Upgrades a request to a socket that shows a log.
pub fn open(
    state: &State,
    pass: SocketAuth,
    watcher: Watcher,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, LiveLog { watcher }, request, payload)
}

impl Feature for LiveLog {
    fn topics(&self, _: &SocketAuth) -> Vec<Topic> {
        vec![self.watcher.topic()]
    }

    /// Sends the lines that arrived before this socket had a subscription to wake it.
    fn opened(subscription: &mut LogSubscription, ctx: &mut Context<Self>) {
        Self::woken(subscription, ctx);
    }

    /// Sends what the socket has not sent yet, a bounded piece at a time.
    fn woken(subscription: &mut LogSubscription, ctx: &mut Context<Self>) {
        let topic = subscription.feature.watcher.topic();
        let (messages, rest) = subscription.feature.watcher.take();
        for message in messages {
            ctx.text(message);
        }
        if subscription.feature.watcher.topic() != topic {
            subscription.subscribe(ctx);
        }
        match rest {
            Rest::Later => {}
            Rest::More => subscription.again(ctx),
            Rest::Over => subscription.end(1000, "the log has ended", ctx),
        }
    }
}
