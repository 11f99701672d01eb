//! Servers that a machine made with an enrolment and a request id, so that the same request again makes no second one.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "enrolled_servers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    pub enrolment_id: Uuid,
    /// SHA-256 of the request id.
    pub request: Vec<u8>,
    /// The key that the machine got last. It may be revoked.
    pub key_id: Uuid,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
