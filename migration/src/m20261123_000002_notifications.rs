//! Notification channels and the outbox.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, binary, boolean, integer, string, string_null, text, text_null, uuid, uuid_null,
};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum Alerts {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum NotificationChannels {
    Table,
    Id,
    OwnerId,
    Name,
    Kind,
    Settings,
    Destination,
    Severities,
    Tags,
    RepeatMinutes,
    TellsRecovery,
    IsEnabled,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden, Clone, Copy)]
enum Notifications {
    Table,
    Id,
    OwnerId,
    ChannelId,
    AlertId,
    Event,
    Subject,
    Content,
    Status,
    MessageId,
    Attempts,
    NextAttemptAt,
    Hold,
    Error,
    CreatedAt,
    AttemptedAt,
    FinishedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(channels()).await?;
        manager.create_table(notifications()).await?;
        for (name, columns) in [
            ("notifications_by_owner", [Notifications::OwnerId, Notifications::Id].as_slice()),
            ("notifications_by_channel", &[Notifications::ChannelId, Notifications::Id]),
            ("notifications_by_alert", &[Notifications::AlertId, Notifications::Id]),
            ("notifications_by_message", &[Notifications::MessageId]),
            ("notifications_by_status", &[Notifications::Status, Notifications::ChannelId, Notifications::Id]),
            ("notifications_by_end", &[Notifications::FinishedAt]),
        ] {
            let mut index = Index::create();
            index.name(name).table(Notifications::Table);
            for column in columns {
                index.col(*column);
            }
            manager.create_index(index.to_owned()).await?;
        }
        // The beginning and the end of an alert are sent once on each channel. Both databases accept this form.
        let once = "CREATE UNIQUE INDEX notifications_once ON notifications (channel_id, alert_id, event) \
                    WHERE event IN ('triggered', 'resolved')";
        manager.get_connection().execute_unprepared(once).await?;
        let by_owner = Index::create()
            .name("notification_channels_by_owner")
            .table(NotificationChannels::Table)
            .col(NotificationChannels::OwnerId)
            .col(NotificationChannels::Id)
            .to_owned();
        manager.create_index(by_owner).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Notifications::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(NotificationChannels::Table).to_owned()).await
    }
}

fn channels() -> TableCreateStatement {
    use NotificationChannels as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::OwnerId))
        .col(string(C::Name))
        .col(string(C::Kind))
        .col(binary(C::Settings))
        .col(string(C::Destination))
        .col(string(C::Severities))
        .col(text(C::Tags))
        .col(integer(C::RepeatMinutes))
        .col(boolean(C::TellsRecovery))
        .col(boolean(C::IsEnabled))
        .col(big_integer(C::CreatedAt))
        .col(big_integer(C::UpdatedAt))
        .foreign_key(
            ForeignKey::create()
                .from(C::Table, C::OwnerId)
                .to(Users::Table, Users::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}

fn notifications() -> TableCreateStatement {
    use Notifications as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::OwnerId))
        .col(uuid(C::ChannelId))
        .col(uuid_null(C::AlertId))
        .col(string(C::Event))
        .col(text(C::Subject))
        .col(text_null(C::Content))
        .col(string(C::Status))
        .col(uuid(C::MessageId))
        .col(integer(C::Attempts))
        .col(big_integer_null(C::NextAttemptAt))
        .col(string_null(C::Hold))
        .col(text_null(C::Error))
        .col(big_integer(C::CreatedAt))
        .col(big_integer_null(C::AttemptedAt))
        .col(big_integer_null(C::FinishedAt))
        .foreign_key(
            ForeignKey::create()
                .from(C::Table, C::ChannelId)
                .to(NotificationChannels::Table, NotificationChannels::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .foreign_key(
            ForeignKey::create()
                .from(C::Table, C::AlertId)
                .to(Alerts::Table, Alerts::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}
