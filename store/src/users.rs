use entity::{Millis, claim, login, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect, Set,
    TryInsertResult,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{changed, record_in};
use super::failure::taken;
use super::{NewLogin, Store, StoreError, User, invitations, logins};
use crate::audit::{Actor, Entry, action};

/// The role of the first account.
pub(super) const ADMINISTRATOR: &str = "administrator";

/// A user to insert.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// The user's id.
    pub id: Uuid,
    /// The e-mail address.
    pub email: String,
    /// The user name.
    pub username: String,
    /// The full name; may be empty.
    pub full_name: String,
    /// The password's hash, in PHC format.
    pub password_hash: String,
}

/// What a user may change of their account; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct UserPatch {
    /// The e-mail address.
    pub email: Option<String>,
    /// The user name.
    pub username: Option<String>,
    /// The full name.
    pub full_name: Option<String>,
}

impl Store {
    /// Creates a user. The very first one is the administrator, and the only one without an invitation where registration is
    /// closed. `address` is where the request came from. Inserts both the user and `login`, with which they are signed in at
    /// once, or neither.
    pub async fn create_user(
        &self,
        new: NewUser,
        admission: impl Into<Admission>,
        address: &str,
        login: Option<NewLogin>,
    ) -> Result<User, StoreError> {
        let admission = admission.into();
        let id = new.id;
        let now = Millis::from(Timestamp::now());
        self.retried(|| async {
            let transaction = self.write.begin().await?;

            let claim = claim::ActiveModel { name: Set(ADMINISTRATOR.to_owned()), user_id: Set(id) };
            let outcome = claim::Entity::insert(claim)
                .on_conflict_do_nothing_on([claim::Column::Name])
                .exec_without_returning(&transaction)
                .await?;
            let is_first = matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0);
            let invitation = match &admission {
                Admission::By(Registration::Closed) if !is_first => return Err(StoreError::RegistrationClosed),
                Admission::By(_) => None,
                Admission::Invited { digest, now } => {
                    Some(invitations::redeem(&transaction, digest, &new.email, *now).await?)
                }
            };

            let user = User {
                id,
                email_key: new.email.to_lowercase(),
                email: new.email.clone(),
                username_key: new.username.to_lowercase(),
                username: new.username.clone(),
                full_name: new.full_name.clone(),
                password_hash: new.password_hash.clone(),
                is_admin: is_first,
                disabled_at: None,
                last_login_at: login.as_ref().map(|login| login.now.into()),
                created_at: now,
                updated_at: now,
            };
            let row = user.clone().into_active_model().reset_all();
            user::Entity::insert(row).exec_without_returning(&transaction).await.map_err(taken)?;
            let actor = Actor {
                user_id: Some(id),
                username: user.username.as_str().into(),
                login_id: None,
                token: None,
                address: address.to_owned(),
            };
            let entry = Entry::new(action::USER_REGISTER, id, actor.clone());
            let entry = match &invitation {
                Some(invitation) => entry.detail(json!({ "invitation": invitation.id })),
                None => entry,
            };
            let mut entries = vec![entry];
            if let Some(invitation) = &invitation {
                entries.extend(self.give_invited(&transaction, invitation, &user, &actor).await?);
            }
            for entry in entries {
                record_in(&transaction, entry).await?;
            }
            if let Some(login) = &login {
                logins::insert(&transaction, login).await?;
            }
            transaction.commit().await?;
            Ok(user)
        })
        .await
    }

    /// Whether there is any user.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(claim::Entity::find_by_id(ADMINISTRATOR.to_owned()).one(&self.read).await?.is_some())
    }

    /// Finds a user.
    pub async fn find_user(&self, id: Uuid) -> Result<Option<User>, StoreError> {
        Ok(user::Entity::find_by_id(id).one(&self.read).await?)
    }

    /// Finds the user with this user name or e-mail address, ignoring case. A user name wins over an address.
    pub async fn find_user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        let key = name.to_lowercase();
        let matches = user::Entity::find()
            .filter(Condition::any().add(user::Column::UsernameKey.eq(&key)).add(user::Column::EmailKey.eq(&key)))
            .all(&self.read)
            .await?;
        Ok(matches.into_iter().max_by_key(|user| user.username_key == key))
    }

    /// Changes a user. None when there is no such user.
    pub async fn update_user(&self, id: Uuid, patch: UserPatch, actor: Actor) -> Result<Option<User>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let Some(user) = user::Entity::find_by_id(id).lock_exclusive().one(&transaction).await? else {
                return Ok(None);
            };
            let detail = changes(&user, &patch);
            let mut row = user.into_active_model();
            if let Some(email) = &patch.email {
                row.email_key = Set(email.to_lowercase());
                row.email = Set(email.clone());
            }
            if let Some(username) = &patch.username {
                row.username_key = Set(username.to_lowercase());
                row.username = Set(username.clone());
            }
            if let Some(full_name) = &patch.full_name {
                row.full_name = Set(full_name.clone());
            }
            row.updated_at = Set(Timestamp::now().into());
            let user = row.update(&transaction).await.map_err(taken)?;
            record_in(&transaction, Entry::new(action::PROFILE_UPDATE, id, actor.clone()).detail(detail)).await?;
            transaction.commit().await?;
            Ok(Some(user))
        })
        .await
    }

    /// Sets the password of the user whom `entry` concerns, and ends all of their logins except `keep`. Returns the logins that
    /// ended; none when `verified_hash` is given and is no longer the user's password.
    pub async fn change_password(
        &self,
        entry: Entry,
        password_hash: String,
        verified_hash: Option<&str>,
        keep: Option<Uuid>,
    ) -> Result<Option<Vec<Uuid>>, StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let unchanged = Condition::all()
                .add(user::Column::Id.eq(user_id))
                .add_option(verified_hash.map(|hash| user::Column::PasswordHash.eq(hash)));
            let changed = user::Entity::update_many()
                .col_expr(user::Column::PasswordHash, password_hash.clone().into())
                .col_expr(user::Column::UpdatedAt, Millis::from(Timestamp::now()).into())
                .filter(unchanged)
                .exec(&transaction)
                .await?;
            if changed.rows_affected == 0 {
                return Ok(None);
            }
            let others = Condition::all()
                .add(login::Column::UserId.eq(user_id))
                .add_option(keep.map(|keep| login::Column::Id.ne(keep)));
            let ended = login::Entity::find().filter(others.clone()).all(&transaction).await?;
            login::Entity::delete_many().filter(others).exec(&transaction).await?;
            record_in(&transaction, entry.clone().detail(json!({ "ended_sessions": ended.len() }))).await?;
            transaction.commit().await?;
            Ok(Some(ended.into_iter().map(|login| login.id).collect()))
        })
        .await
    }

    /// Replaces a hash by a stronger one of the same password, unless the password has changed.
    pub async fn rehash_password(&self, user_id: Uuid, old: &str, new: String) -> Result<(), StoreError> {
        user::Entity::update_many()
            .col_expr(user::Column::PasswordHash, new.into())
            .filter(user::Column::Id.eq(user_id))
            .filter(user::Column::PasswordHash.eq(old))
            .exec(&self.write)
            .await?;
        Ok(())
    }
}

/// The audit detail of a patch, with old and new values.
fn changes(user: &User, patch: &UserPatch) -> Value {
    let fields = [
        ("email", changed(&user.email, patch.email.as_ref())),
        ("username", changed(&user.username, patch.username.as_ref())),
        ("full_name", changed(&user.full_name, patch.full_name.as_ref())),
    ];
    let named = fields.into_iter().filter_map(|(name, change)| Some((name.to_owned(), change?)));
    named.collect::<serde_json::Map<_, _>>().into()
}

/// What lets somebody create an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Registration is open, or it is the first account.
    By(Registration),
    /// The invitation with this digest, at this time.
    Invited {
        /// SHA-256 of the token.
        digest: Vec<u8>,
        /// The present time.
        now: Timestamp,
    },
}

impl From<Registration> for Admission {
    fn from(registration: Registration) -> Self {
        Self::By(registration)
    }
}

/// Whether people may create accounts themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Registration {
    #[default]
    #[expect(missing_docs, reason = "clap prints doc comments in --help, and the name says it all")]
    Open,
    /// Only the first account, the administrator's, can be made.
    Closed,
}
