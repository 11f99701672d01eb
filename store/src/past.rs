//! Rows with times of the past. Only the demo writes them, whose account is as old as its history.

use entity::{Millis, alert_event, alert_threshold, server, user};
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{AlertEvent, Store, StoreError};

impl Store {
    /// Adds these lines to the timelines of their alerts.
    pub async fn add_alert_events(&self, events: &[AlertEvent]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.retried(|| async {
            let rows = events.iter().map(|event| event.clone().into_active_model().reset_all());
            alert_event::Entity::insert_many(rows).exec_without_returning(&self.write).await?;
            Ok(())
        })
        .await
    }

    /// Sets when these users were created, with their servers and thresholds.
    pub async fn backdate_accounts(&self, users: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        let at_ms = Millis::from(at).0;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            user::Entity::update_many()
                .col_expr(user::Column::CreatedAt, Expr::value(at_ms))
                .filter(user::Column::Id.is_in(users.iter().copied()))
                .exec(&transaction)
                .await?;
            server::Entity::update_many()
                .col_expr(server::Column::CreatedAt, Expr::value(at_ms))
                .filter(server::Column::OwnerId.is_in(users.iter().copied()))
                .exec(&transaction)
                .await?;
            alert_threshold::Entity::update_many()
                .col_expr(alert_threshold::Column::CreatedAt, Expr::value(at_ms))
                .filter(alert_threshold::Column::OwnerId.is_in(users.iter().copied()))
                .exec(&transaction)
                .await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }
}
