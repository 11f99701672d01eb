//! Takes notifications out of a claimed message.

use entity::notification;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, QueryFilter};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::claims::{Attempt, Claim, finished};
use super::outbox::PENDING;
use super::{Store, StoreError};

impl Store {
    /// Gives up some notifications of a claimed message before it is sent: what they say is no longer for the channel's owner. The
    /// others are sent at once, under a new id, because a receiver may know the message with all of them.
    pub async fn withdraw(&self, claim: &Claim, ids: &[Uuid], why: &str, now: Timestamp) -> Result<(), StoreError> {
        let given_up = Attempt::GivenUp { error: why.to_owned() };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let ours = |update: sea_orm::UpdateMany<notification::Entity>| {
                update
                    .filter(notification::Column::MessageId.eq(claim.message_id))
                    .filter(notification::Column::ChannelId.eq(claim.channel.id))
                    .filter(notification::Column::Status.eq(PENDING))
                    .filter(notification::Column::Attempts.eq(claim.attempts()))
            };
            let gone = finished(&given_up, now).filter(notification::Column::Id.is_in(ids.iter().copied()));
            ours(gone).exec(&transaction).await?;
            let rest = finished(&Attempt::Split, now)
                .col_expr(notification::Column::Attempts, Expr::col(notification::Column::Attempts).sub(1))
                .col_expr(notification::Column::MessageId, Expr::value(Uuid::now_v7()));
            ours(rest).exec(&transaction).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }
}
