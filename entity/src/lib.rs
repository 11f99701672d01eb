//! The tables, one file each. Only the service's `store` crate uses this one.
//!
//! Times are [`Millis`], integers since the Unix epoch, so that SQLite and PostgreSQL store exactly the same value.

pub mod alert;
pub mod alert_bucket;
pub mod alert_count;
pub mod alert_event;
pub mod alert_threshold;
pub mod api_key;
pub mod approval;
pub mod approval_server;
pub mod approval_signature;
pub mod audit_entry;
pub mod audit_head;
pub mod claim;
pub mod clock;
pub mod command;
pub mod command_batch;
pub mod enrolled_server;
pub mod enrolment;
pub mod external_identity;
pub mod external_login;
pub mod grant;
pub mod history_block;
pub mod history_journal;
pub mod history_piece;
pub mod history_sample;
pub mod invitation;
pub mod login;
pub mod logout_token;
pub mod millis;
pub mod notification;
pub mod notification_channel;
pub mod passkey;
pub mod program_token;
pub mod recovery_code;
pub mod sample;
pub mod schedule;
pub mod schedule_run;
pub mod series_help;
pub mod server;
pub mod server_event;
pub mod server_tag;
pub mod silence;
pub mod spent_challenge;
pub mod team;
pub mod team_member;
pub mod totp;
pub mod update_rollout;
pub mod update_rollout_server;
pub mod user;
pub mod view;

pub use millis::Millis;
