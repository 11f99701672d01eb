//! Who users are at an identity provider.
//!
//! A person is an issuer and a subject there, and nothing else: names and e-mail addresses change hands. The sign-ins that
//! came of it are in `external_logins`.

use entity::{Millis, external_identity, external_login, login, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, SqlErr,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::external_logins::{ProviderLogin, insert_login};
use super::failure::taken;
use super::provider_teams::{self, TeamsChange};
use super::{ExternalIdentity, NewUser, Page, PageRequest, Store, StoreError, User, logins};
use crate::audit::{Actor, Entry, action};

/// Numbers that are tried after a user name that somebody has. With so many of one name, a random ending follows.
const MAX_NUMBER: u32 = 50;

/// The longest user name; a number has to fit as well.
const MAX_USERNAME: usize = 64;

/// A person of an identity provider, as a sign-in showed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIdentity {
    /// The provider's address.
    pub issuer: String,
    /// The provider's name of the person.
    pub subject: String,
    /// The e-mail address, if the provider named one.
    pub email: Option<String>,
    /// The groups.
    pub groups: Vec<String>,
}

impl NewIdentity {
    fn groups_text(&self) -> String {
        json!(self.groups).to_string()
    }
}

/// The outcome of a first sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstSignIn {
    /// The account was created, and signed in.
    Created(Box<User>, TeamsChange),
    /// An account has this e-mail address. Only its owner can say that it is the same person.
    EmailTaken,
    /// Another request created the account at the same time: it is to be found now.
    Exists,
}

/// The outcome of linking a person to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityLink {
    /// They belong together, perhaps since earlier.
    Linked(TeamsChange),
    /// The person has another account.
    TakenByAnother,
    /// The account or its sign-in is gone.
    Gone,
}

/// The outcome of removing a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The link is gone.
    Removed,
    /// Nobody could sign in to the account any more: it has no password, and this is its only link.
    LastWayIn,
    /// The user has no such link.
    NotFound,
}

impl Store {
    /// Finds a person of an identity provider.
    pub async fn find_identity(&self, issuer: &str, subject: &str) -> Result<Option<ExternalIdentity>, StoreError> {
        Ok(by_subject(issuer, subject).one(&self.read).await?)
    }

    /// Lists a user's identities, newest first.
    pub async fn list_identities(
        &self,
        user_id: Uuid,
        page: PageRequest,
    ) -> Result<Page<ExternalIdentity>, StoreError> {
        let query = external_identity::Entity::find().filter(external_identity::Column::UserId.eq(user_id));
        let total = query.clone().count(&self.read).await?;
        let items = query
            .order_by_desc(external_identity::Column::CreatedAt)
            .order_by_desc(external_identity::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items, total })
    }

    /// Creates an account without a password for a person, and signs it in. The user name is that of `new`, with a number
    /// after it where somebody else has it.
    pub async fn join_by_identity(
        &self,
        new: &NewUser,
        identity: &NewIdentity,
        login: &ProviderLogin,
    ) -> Result<FirstSignIn, StoreError> {
        let outcome = self.retried(|| self.try_join(new, identity, login)).await;
        match outcome {
            Err(StoreError::EmailTaken) => Ok(FirstSignIn::EmailTaken),
            // Somebody took the name, or the same person came twice at once: a caller that asks again sees which.
            Err(StoreError::UsernameTaken) => Ok(FirstSignIn::Exists),
            Err(StoreError::Database(error)) if is_duplicate(&error) => Ok(FirstSignIn::Exists),
            other => other,
        }
    }

    async fn try_join(
        &self,
        new: &NewUser,
        identity: &NewIdentity,
        login: &ProviderLogin,
    ) -> Result<FirstSignIn, StoreError> {
        let now = Millis::from(login.login.now);
        let transaction = self.write.begin().await?;
        if by_subject(&identity.issuer, &identity.subject).one(&transaction).await?.is_some() {
            return Ok(FirstSignIn::Exists);
        }
        let username = free_username(&transaction, &new.username).await?;
        let user = User {
            id: new.id,
            email_key: new.email.to_lowercase(),
            email: new.email.clone(),
            username_key: username.to_lowercase(),
            username: username.clone(),
            full_name: new.full_name.clone(),
            password_hash: new.password_hash.clone(),
            is_admin: false,
            disabled_at: None,
            last_login_at: Some(now),
            created_at: now,
            updated_at: now,
        };
        let row = user.clone().into_active_model().reset_all();
        user::Entity::insert(row).exec_without_returning(&transaction).await.map_err(taken)?;
        let actor = Actor {
            user_id: Some(user.id),
            username: username.as_str().into(),
            login_id: None,
            token: None,
            address: login.login.address.clone(),
        };
        let entry = Entry::new(action::USER_REGISTER, user.id, actor);
        record_in(&transaction, entry.detail(json!({ "by": "oidc", "issuer": identity.issuer }))).await?;
        let row = insert_identity(&transaction, user.id, identity, now).await?;
        insert_login(&transaction, row.id, &user, login).await?;
        let (address, now) = (&login.login.address, login.login.now);
        let change = provider_teams::sync(&transaction, &user, &identity.issuer, address, now).await?;
        transaction.commit().await?;
        Ok(FirstSignIn::Created(Box::new(user), change))
    }

    /// Signs in the user of an identity, and stores what the provider says of them now: their groups decide in which of its teams
    /// they are. Returns none if the link is gone or the account is disabled.
    pub async fn sign_in_by_identity(
        &self,
        identity_id: Uuid,
        identity: &NewIdentity,
        login: &ProviderLogin,
    ) -> Result<Option<(User, TeamsChange)>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // First, so that a change of the link waits for this transaction.
            let updated = external_identity::Entity::update_many()
                .col_expr(external_identity::Column::Email, identity.email.clone().unwrap_or_default().into())
                .col_expr(external_identity::Column::Groups, identity.groups_text().into())
                .col_expr(external_identity::Column::LastSignInAt, Millis::from(login.login.now).into())
                .filter(external_identity::Column::Id.eq(identity_id))
                .filter(external_identity::Column::UserId.eq(login.login.user_id))
                .exec(&transaction)
                .await?;
            let is_admitted = logins::admit(&transaction, &login.login).await?;
            let user = user::Entity::find_by_id(login.login.user_id).one(&transaction).await?;
            let (1, true, Some(user)) = (updated.rows_affected, is_admitted, user) else { return Ok(None) };
            insert_login(&transaction, identity_id, &user, login).await?;
            let (address, now) = (&login.login.address, login.login.now);
            let change = provider_teams::sync(&transaction, &user, &identity.issuer, address, now).await?;
            transaction.commit().await?;
            Ok(Some((user, change)))
        })
        .await
    }

    /// Links a person to the account of a login that is still active.
    pub async fn link_identity(
        &self,
        login_id: Uuid,
        identity: &NewIdentity,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<IdentityLink, StoreError> {
        let linked = self.retried(|| async {
            let transaction = self.write.begin().await?;
            let Some(login) = login::Entity::find_by_id(login_id).lock_exclusive().one(&transaction).await? else {
                return Ok(IdentityLink::Gone);
            };
            match by_subject(&identity.issuer, &identity.subject).one(&transaction).await? {
                Some(known) if known.user_id == login.user_id => return Ok(IdentityLink::Linked(TeamsChange::Same)),
                Some(_) => return Ok(IdentityLink::TakenByAnother),
                None => {}
            }
            let row = insert_identity(&transaction, login.user_id, identity, now.into()).await?;
            let entry = Entry::new(action::IDENTITY_LINK, login.user_id, actor.clone()).target(row.id);
            let detail = json!({ "issuer": identity.issuer, "subject": identity.subject, "email": identity.email });
            record_in(&transaction, entry.detail(detail)).await?;
            let user = user::Entity::find_by_id(login.user_id).one(&transaction).await?;
            let Some(user) = user else { return Ok(IdentityLink::Gone) };
            let change = provider_teams::sync(&transaction, &user, &identity.issuer, &actor.address, now).await?;
            transaction.commit().await?;
            Ok(IdentityLink::Linked(change))
        });
        match linked.await {
            Err(StoreError::Database(error)) if is_duplicate(&error) => Ok(IdentityLink::TakenByAnother),
            other => other,
        }
    }

    /// Removes a link of the user whom `entry` concerns, with their places in teams that came of it, and ends the logins that came
    /// by it. Returns those as well. `has_password` says whether the user may sign in with a password, if there is one.
    pub async fn unlink_identity(
        &self,
        id: Uuid,
        has_password: bool,
        entry: Entry,
    ) -> Result<(Removal, Vec<Uuid>), StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Locked, so that of two requests for two links one sees that the other was the last but one.
            let user = user::Entity::find_by_id(user_id).lock_exclusive().one(&transaction).await?;
            let own = external_identity::Entity::find().filter(external_identity::Column::UserId.eq(user_id));
            let found = own.clone().filter(external_identity::Column::Id.eq(id)).one(&transaction).await?;
            let (Some(user), Some(found)) = (user, found) else { return Ok((Removal::NotFound, Vec::new())) };
            let is_only_way = user.password_hash.is_empty() || !has_password;
            if is_only_way && own.count(&transaction).await? == 1 {
                return Ok((Removal::LastWayIn, Vec::new()));
            }
            let logins: Vec<Uuid> = external_login::Entity::find()
                .filter(external_login::Column::IdentityId.eq(id))
                .select_only()
                .column(external_login::Column::LoginId)
                .into_tuple()
                .all(&transaction)
                .await?;
            login::Entity::delete_many().filter(login::Column::Id.is_in(logins.clone())).exec(&transaction).await?;
            for login_id in &logins {
                let ended = Entry::new(action::SESSION_END, user_id, entry.actor.clone()).target(*login_id);
                record_in(&transaction, ended.detail(json!({ "reason": "unlinked" }))).await?;
            }
            external_identity::Entity::delete_by_id(id).exec(&transaction).await?;
            let detail = json!({ "issuer": found.issuer, "subject": found.subject });
            record_in(&transaction, entry.clone().target(id).detail(detail)).await?;
            let address = &entry.actor.address;
            provider_teams::sync(&transaction, &user, &found.issuer, address, Timestamp::now()).await?;
            transaction.commit().await?;
            Ok((Removal::Removed, logins))
        })
        .await
    }

    /// The administrator who is the last to lose the password: the oldest one that has one.
    pub async fn oldest_administrator_with_password(&self) -> Result<Option<Uuid>, StoreError> {
        let query = user::Entity::find()
            .filter(user::Column::IsAdmin.eq(true))
            .filter(user::Column::DisabledAt.is_null())
            .filter(user::Column::PasswordHash.ne(""))
            .order_by_asc(user::Column::CreatedAt)
            .order_by_asc(user::Column::Id);
        Ok(query.one(&self.read).await?.map(|user| user.id))
    }
}

fn by_subject(issuer: &str, subject: &str) -> sea_orm::Select<external_identity::Entity> {
    external_identity::Entity::find()
        .filter(external_identity::Column::Issuer.eq(issuer))
        .filter(external_identity::Column::Subject.eq(subject))
}

async fn insert_identity(
    connection: &impl ConnectionTrait,
    user_id: Uuid,
    new: &NewIdentity,
    now: Millis,
) -> Result<ExternalIdentity, StoreError> {
    let row = ExternalIdentity {
        id: Uuid::now_v7(),
        user_id,
        issuer: new.issuer.clone(),
        subject: new.subject.clone(),
        email: new.email.clone().unwrap_or_default(),
        groups: new.groups_text(),
        created_at: now,
        last_sign_in_at: now,
    };
    let inserted = row.clone().into_active_model().reset_all();
    external_identity::Entity::insert(inserted).exec_without_returning(connection).await?;
    Ok(row)
}

/// The name, or the name with the first number that nobody has.
async fn free_username(connection: &impl ConnectionTrait, wanted: &str) -> Result<String, StoreError> {
    let numbered = |number: u32| {
        let ending = format!("-{number}");
        let kept: String = wanted.chars().take(MAX_USERNAME - ending.len()).collect();
        format!("{kept}{ending}")
    };
    let mut candidates = vec![wanted.to_owned()];
    candidates.extend((2..=MAX_NUMBER).map(numbered));
    let keys: Vec<String> = candidates.iter().map(|name| name.to_lowercase()).collect();
    let used: Vec<String> = user::Entity::find()
        .select_only()
        .column(user::Column::UsernameKey)
        .filter(user::Column::UsernameKey.is_in(keys))
        .into_tuple()
        .all(connection)
        .await?;
    let free = candidates.into_iter().find(|name| !used.contains(&name.to_lowercase()));
    let random = || {
        let ending = format!("-{}", Uuid::new_v4().simple());
        let kept: String = wanted.chars().take(MAX_USERNAME - ending.len()).collect();
        format!("{kept}{ending}")
    };
    Ok(free.unwrap_or_else(random))
}

fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}
