//! `/notifications` and its deliveries: channels as users manage them, the outbox as every database must store it, and the
//! dispatcher that empties it.

mod api;
mod clock;
mod deliveries;
mod dispatcher;
mod failures;
mod order;
mod outbox;
mod push;
mod reminders;
mod scene;
mod slow;
mod too_large;
