//! The schema, one migration per file, each with a working `down`. A released migration is never edited.

// The trait's methods are declared with an elided lifetime, and async_trait requires the very same signature.
#![allow(elided_lifetimes_in_paths)]

pub use m20261125_000010_alert_lists::exceptional;
pub use m20261126_000011_alert_buckets::BUCKET_DIGITS;
use sea_orm_migration::prelude::*;
pub use sea_orm_migration::{MigratorTrait, SchemaManager};

mod m20261120_000001_accounts;
mod m20261120_000002_servers;
mod m20261120_000003_samples;
mod m20261121_000001_history;
mod m20261122_000001_audit;
mod m20261122_000002_commands;
mod m20261123_000001_alerts;
mod m20261123_000002_notifications;
mod m20261124_000001_postgres_history;
mod m20261124_000002_instances;
mod m20261124_000003_unattended;
mod m20261125_000001_clock;
mod m20261125_000002_notification_recipients;
mod m20261125_000003_alert_counts;
mod m20261125_000007_bounds;
mod m20261125_000009_server_events;
mod m20261125_000010_alert_lists;
mod m20261126_000011_alert_buckets;
mod m20261127_000012_series_help;
mod m20261127_000012_series_thresholds;
mod m20261127_000013_views;
mod m20261128_000014_sharing;
mod m20261128_000015_accounts;
mod m20261128_000016_factors;
mod m20261128_000017_external_identities;
mod m20261128_000019_shared_views;
mod m20261128_000020_annotations;
mod m20261128_000021_tags_by_owner;
mod m20261128_000024_provider_teams;
mod m20261128_000027_signed_commands;
mod m20261128_000028_tokens;
mod m20261128_000029_approvals;
mod m20261128_000030_schedules;
mod m20261128_000031_enrolments;
mod m20261128_000033_schedule_alerts;
mod m20261128_000034_refusal_reasons;
mod m20261128_000038_refused_approvals;
mod m20261128_000039_update_rollouts;
mod m20261128_000040_open_batches;
mod m20261129_000041_cancel_requests;

/// Applies the migrations in order; run by the service at every start.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261120_000001_accounts::Migration),
            Box::new(m20261120_000002_servers::Migration),
            Box::new(m20261120_000003_samples::Migration),
            Box::new(m20261121_000001_history::Migration),
            Box::new(m20261122_000001_audit::Migration),
            Box::new(m20261122_000002_commands::Migration),
            Box::new(m20261123_000001_alerts::Migration),
            Box::new(m20261123_000002_notifications::Migration),
            Box::new(m20261124_000001_postgres_history::Migration),
            Box::new(m20261124_000002_instances::Migration),
            Box::new(m20261124_000003_unattended::Migration),
            Box::new(m20261125_000001_clock::Migration),
            Box::new(m20261125_000002_notification_recipients::Migration),
            Box::new(m20261125_000003_alert_counts::Migration),
            Box::new(m20261125_000007_bounds::Migration),
            Box::new(m20261125_000009_server_events::Migration),
            Box::new(m20261125_000010_alert_lists::Migration),
            Box::new(m20261126_000011_alert_buckets::Migration),
            Box::new(m20261127_000012_series_help::Migration),
            Box::new(m20261127_000012_series_thresholds::Migration),
            Box::new(m20261127_000013_views::Migration),
            Box::new(m20261128_000014_sharing::Migration),
            Box::new(m20261128_000015_accounts::Migration),
            Box::new(m20261128_000016_factors::Migration),
            Box::new(m20261128_000017_external_identities::Migration),
            Box::new(m20261128_000019_shared_views::Migration),
            Box::new(m20261128_000020_annotations::Migration),
            Box::new(m20261128_000021_tags_by_owner::Migration),
            Box::new(m20261128_000024_provider_teams::Migration),
            Box::new(m20261128_000027_signed_commands::Migration),
            Box::new(m20261128_000028_tokens::Migration),
            Box::new(m20261128_000029_approvals::Migration),
            Box::new(m20261128_000030_schedules::Migration),
            Box::new(m20261128_000031_enrolments::Migration),
            Box::new(m20261128_000033_schedule_alerts::Migration),
            Box::new(m20261128_000034_refusal_reasons::Migration),
            Box::new(m20261128_000038_refused_approvals::Migration),
            Box::new(m20261128_000039_update_rollouts::Migration),
            Box::new(m20261128_000040_open_batches::Migration),
            Box::new(m20261129_000041_cancel_requests::Migration),
        ]
    }
}
