//! A dashboard that watches one command: its past output, its new output, and how it ends.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::frontend::FeedMessage;

use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::commands::job::Job;
use crate::commands::output::Next;
use crate::feeds::Topic;
use crate::state::State;

/// Output that is sent in one piece; then other sockets have their turn.
const PIECE_BYTES: usize = 256 * 1024;

/// A socket that shows a command.
pub type CommandSubscription = Dashboard<LiveCommand>;

/// The command that a socket shows.
pub struct LiveCommand {
    job: Arc<Job>,
    /// How much of its output was sent, as an offset.
    place: u64,
    /// A task that waits for more output is running.
    is_waiting: bool,
}

/// Upgrades a request to a socket that shows a command.
pub fn open(
    state: &State,
    pass: SocketAuth,
    job: Arc<Job>,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, LiveCommand { job, place: 0, is_waiting: false }, request, payload)
}

impl Feature for LiveCommand {
    fn topics(&self, _: &SocketAuth) -> Vec<Topic> {
        Vec::new()
    }

    fn opened(subscription: &mut CommandSubscription, ctx: &mut Context<Self>) {
        Self::woken(subscription, ctx);
    }

    fn woken(subscription: &mut CommandSubscription, ctx: &mut Context<Self>) {
        if subscription.feature.is_waiting {
            return;
        }
        // Read before the output: output that arrives after this is still sent before the end.
        let end = subscription.feature.job.ended();
        let (found, place) = subscription.feature.job.read(subscription.feature.place, PIECE_BYTES);
        let is_all = place == subscription.feature.job.output_end();
        subscription.feature.place = place;
        for next in found {
            subscription.send(&message_of(next), ctx);
        }
        match end {
            _ if !is_all => subscription.again(ctx),
            Some(_) => {
                let result = FeedMessage::Result(subscription.feature.job.result());
                subscription.send(&result, ctx);
                subscription.end(1000, "the command has ended", ctx);
            }
            None => await_more(subscription, ctx),
        }
    }
}

fn await_more(subscription: &mut CommandSubscription, ctx: &mut Context<LiveCommand>) {
    subscription.feature.is_waiting = true;
    let (job, place) = (subscription.feature.job.clone(), subscription.feature.place);
    let more = async move { job.beyond(place).await };
    ctx.spawn(more.into_actor(subscription).map(|_, subscription, ctx| {
        subscription.feature.is_waiting = false;
        LiveCommand::woken(subscription, ctx);
    }));
}

fn message_of(next: Next) -> FeedMessage {
    match next {
        Next::LeftOut(bytes) => FeedMessage::LeftOut { bytes },
        Next::Piece(piece) => {
            FeedMessage::Output { stream: Some(piece.stream), data: piece.text, offset: Some(piece.offset) }
        }
    }
}
