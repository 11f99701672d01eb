//! `/notifications` and its deliveries: channels as users manage them, the outbox as every database must store it, and the
//! courier that empties it.

mod api;
mod clock;
mod courier;
mod deliveries;
mod failures;
mod outbox;
mod scene;
mod slow;
mod too_large;
