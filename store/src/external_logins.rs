//! Logins that came from an identity provider, and how the provider ends them.

use entity::{Millis, external_identity, external_login, login, logout_token};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect,
    TryInsertResult,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::{NewLogin, Store, StoreError, User, logins};
use crate::audit::{Actor, Entry, action};

/// A sign-in to insert, and the provider's name of its session if it has one.
#[derive(Debug, Clone)]
pub struct ProviderLogin {
    /// The sign-in.
    pub login: NewLogin,
    /// The provider's name of its session.
    pub sid: Option<String>,
}

/// What a provider says about the end of sessions. It names a session, a person, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutNotice {
    /// The provider's address.
    pub issuer: String,
    /// The person whose sessions end.
    pub subject: Option<String>,
    /// The only session that ends.
    pub sid: Option<String>,
    /// The provider's name of this message.
    pub jti: String,
    /// When the message is too old to be believed anyway.
    pub expires_at: Timestamp,
}

impl Store {
    /// Ends the logins that a provider says have ended. Returns them; none if this message was used before.
    pub async fn end_external_logins(
        &self,
        notice: &LogoutNotice,
        address: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Uuid>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            logout_token::Entity::delete_many()
                .filter(logout_token::Column::ExpiresAt.lt(Millis::from(now)))
                .exec(&transaction)
                .await?;
            let spent = logout_token::Model {
                issuer: notice.issuer.clone(),
                jti: notice.jti.clone(),
                expires_at: notice.expires_at.into(),
            };
            let inserted = logout_token::Entity::insert(spent.into_active_model().reset_all())
                .on_conflict_do_nothing_on([logout_token::Column::Issuer, logout_token::Column::Jti])
                .exec_without_returning(&transaction)
                .await?;
            if !matches!(inserted, TryInsertResult::Inserted(rows) if rows > 0) {
                return Ok(None);
            }
            let meant = Condition::all()
                .add(external_identity::Column::Issuer.eq(notice.issuer.as_str()))
                .add_option(notice.subject.as_ref().map(|subject| external_identity::Column::Subject.eq(subject)))
                .add_option(notice.sid.as_ref().map(|sid| external_login::Column::Sid.eq(sid)));
            let ending: Vec<(Uuid, Uuid)> = external_login::Entity::find()
                .inner_join(external_identity::Entity)
                .filter(meant)
                .select_only()
                .column(external_login::Column::LoginId)
                .column(external_identity::Column::UserId)
                .into_tuple()
                .all(&transaction)
                .await?;
            let ids: Vec<Uuid> = ending.iter().map(|(login_id, _)| *login_id).collect();
            login::Entity::delete_many().filter(login::Column::Id.is_in(ids.clone())).exec(&transaction).await?;
            for (login_id, user_id) in ending {
                let entry = Entry::new(action::SESSION_END, user_id, Actor::service(address)).target(login_id);
                record_in(&transaction, entry.detail(json!({ "reason": "provider_logout" }))).await?;
            }
            transaction.commit().await?;
            Ok(Some(ids))
        })
        .await
    }
}

impl Store {
    /// Whether a refresh token is the one that a login expects next.
    pub async fn is_current_token(&self, login_id: Uuid, token: Uuid) -> Result<bool, StoreError> {
        let login = login::Entity::find_by_id(login_id).one(&self.read).await?;
        Ok(login.is_some_and(|login| login.current_token == token))
    }
}

/// Inserts a login of an identity's user, with its audit entry.
pub(super) async fn insert_login(
    connection: &impl ConnectionTrait,
    identity_id: Uuid,
    user: &User,
    new: &ProviderLogin,
) -> Result<(), StoreError> {
    let login = NewLogin { user_id: user.id, username: user.username.clone(), ..new.login.clone() };
    let detail = json!({ "user_agent": login.user_agent, "means": login.means.word(), "by": "oidc" });
    logins::insert_with(connection, &login, detail).await?;
    let row = external_login::Model { login_id: login.id, identity_id, sid: new.sid.clone() };
    external_login::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(connection).await?;
    Ok(())
}
