//! `/notifications`, and what is told through it: channels as people manage them, the outbox as every database must
//! keep it, and the courier that empties it.

mod api;
mod clock;
mod courier;
mod deliveries;
mod failures;
mod outbox;
mod scene;
mod slow;
