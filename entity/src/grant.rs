//! Grants: what a user or a team may do to servers of another account.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "grants")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The account whose servers are meant.
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// Who gave it; null once that account is deleted.
    #[sea_orm(indexed)]
    pub giver_id: Option<Uuid>,
    /// To whom: either this or `subject_team_id`.
    #[sea_orm(indexed)]
    pub subject_user_id: Option<Uuid>,
    #[sea_orm(indexed)]
    pub subject_team_id: Option<Uuid>,
    /// The server; null for a tag or all servers.
    #[sea_orm(indexed)]
    pub server_id: Option<Uuid>,
    /// The tag; null for one server or all servers.
    pub tag: Option<String>,
    /// `viewer`, `responder`, `operator` or `manager`.
    pub role: String,
    /// The rights of an operator, separated by commas.
    pub rights: String,
    pub created_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
