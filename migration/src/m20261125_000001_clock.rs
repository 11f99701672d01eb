//! The time that has certainly passed, remembered across restarts; and which revision of a threshold raised an alert, so that
//! no clock decides whether the two belong together.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, integer, small_integer, text};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Clock {
    Table,
    Id,
    BootId,
    BootMs,
    CertainMs,
}

#[derive(DeriveIden)]
enum AlertThresholds {
    Table,
    Revision,
}

#[derive(DeriveIden)]
enum Alerts {
    Table,
    ThresholdRevision,
}

/// Alerts of a threshold's earlier terms belong to none of its revisions.
const FORMER: &str = "\
    UPDATE alerts SET threshold_revision = -1 WHERE EXISTS (SELECT 1 FROM alert_thresholds \
    WHERE alert_thresholds.id = alerts.threshold_id AND alerts.triggered_at < alert_thresholds.armed_at)";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let clock = Table::create()
            .table(Clock::Table)
            .col(small_integer(Clock::Id).primary_key())
            .col(text(Clock::BootId))
            .col(big_integer(Clock::BootMs))
            .col(big_integer(Clock::CertainMs))
            .to_owned();
        manager.create_table(clock).await?;
        let revision = integer(AlertThresholds::Revision).default(0).to_owned();
        let of_threshold = Table::alter().table(AlertThresholds::Table).add_column(revision).to_owned();
        manager.alter_table(of_threshold).await?;
        let revision = integer(Alerts::ThresholdRevision).default(0).to_owned();
        manager.alter_table(Table::alter().table(Alerts::Table).add_column(revision).to_owned()).await?;
        manager.get_connection().execute_unprepared(FORMER).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let of_alert = Table::alter().table(Alerts::Table).drop_column(Alerts::ThresholdRevision).to_owned();
        manager.alter_table(of_alert).await?;
        let of_threshold =
            Table::alter().table(AlertThresholds::Table).drop_column(AlertThresholds::Revision).to_owned();
        manager.alter_table(of_threshold).await?;
        manager.drop_table(Table::drop().table(Clock::Table).to_owned()).await
    }
}
