//! A signed command that waits until enough people have signed it, and what became of it.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "approvals")]
pub struct Model {
    /// The id of its first batch, too, once that runs.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The user who asked, and with which login.
    #[sea_orm(indexed)]
    pub user_id: Uuid,
    pub login_id: Option<Uuid>,
    /// The user's name and address at that time.
    #[sea_orm(column_type = "Text")]
    pub username: String,
    #[sea_orm(column_type = "Text")]
    pub address: String,
    #[sea_orm(column_type = "Text")]
    pub command: String,
    /// Until its batch has ended, because it may wait again then.
    #[sea_orm(column_type = "Text", nullable)]
    pub stdin: Option<String>,
    pub timeout_seconds: i32,
    pub concurrency: i32,
    pub stop_on_failure: bool,
    /// The bytes that are signed.
    pub payload: Vec<u8>,
    /// How many signatures it needs: as many as the agents said when it was asked for, or one more than they have refused.
    pub needed: i32,
    #[sea_orm(column_type = "Text")]
    pub status: String,
    /// When the payload holds.
    pub not_before: Millis,
    pub expires_at: Millis,
    pub created_at: Millis,
    pub ended_at: Option<Millis>,
    /// The newest batch that it has become, also while it waits again.
    #[sea_orm(indexed)]
    pub batch_id: Option<Uuid>,
    /// Why agents refused the signatures of that batch, if it waits again.
    #[sea_orm(column_type = "Text", nullable)]
    pub refused_reason: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
