//! `signalbox user`: accounts, beside a running service, which applies the changes within a second.

use std::fmt;

use signalbox_protocol::Timestamp;

use super::{AdminError, open_filled};
use crate::audit::Actor;
use crate::auth::invitation;
use crate::config::Config;
use crate::store::{Account, AccountPatch, NewInvitation, PageRequest, Store, User};

/// Accounts that are read in one query.
const AT_ONCE: u64 = 500;

const HOUR_MS: i64 = 3_600_000;

/// The accounts of a service, as a table for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTable(Vec<Account>);

/// Lists the accounts whose names or address contain `text`, newest first.
pub async fn list(config: &Config, text: Option<String>) -> Result<AccountTable, AdminError> {
    let store = open_filled(config).await?;
    let listed = list_all(&store, text).await;
    store.close().await;
    listed.map(AccountTable)
}

async fn list_all(store: &Store, text: Option<String>) -> Result<Vec<Account>, AdminError> {
    let mut all = Vec::new();
    loop {
        let page = PageRequest { limit: AT_ONCE, offset: all.len() as u64 };
        let found = store.list_accounts(text.clone(), Timestamp::now(), page).await?;
        let is_last = (found.items.len() as u64) < AT_ONCE;
        all.extend(found.items);
        if is_last {
            return Ok(all);
        }
    }
}

/// Changes the account of a user. Returns the user afterwards.
pub async fn change(config: &Config, name: &str, patch: AccountPatch) -> Result<User, AdminError> {
    let store = open_filled(config).await?;
    let changed = change_in(&store, name, patch).await;
    store.close().await;
    changed
}

async fn change_in(store: &Store, name: &str, patch: AccountPatch) -> Result<User, AdminError> {
    let no_user = || AdminError::NoUser(name.to_owned());
    let user = store.find_user_by_name(name).await?.ok_or_else(no_user)?;
    store.change_account(user.id, patch, Actor::command_line()).await?.ok_or_else(no_user)
}

/// Invites somebody for some hours. Returns the link, at the address `base`.
pub async fn invite(config: &Config, base: &str, email: Option<String>, hours: u64) -> Result<String, AdminError> {
    let fresh = invitation::generate()?;
    let now = Timestamp::now();
    let new = NewInvitation {
        owner_id: None,
        digest: fresh.digest,
        email,
        grants: Vec::new(),
        now,
        expires_at: now.plus_millis(i64::try_from(hours).unwrap_or(i64::MAX).saturating_mul(HOUR_MS)),
    };
    let store = open_filled(config).await?;
    let created = store.create_invitation(new, Actor::command_line()).await;
    store.close().await;
    created?;
    Ok(invitation::url(base, &fresh.token))
}

/// Columns of the table. A user name has 64 characters at most; longer ones move their line to the right.
const NAME_WIDTH: usize = 20;
const EMAIL_WIDTH: usize = 30;
const STATE_WIDTH: usize = 14;

impl fmt::Display for AccountTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, email, state) = ("user name", "e-mail address", "state");
        write!(f, "{name:<NAME_WIDTH$} {email:<EMAIL_WIDTH$} {state:<STATE_WIDTH$} servers sessions last sign-in")?;
        for Account { user, servers, sessions, .. } in &self.0 {
            let state = match (user.disabled_at, user.is_admin) {
                (Some(_), _) => "disabled",
                (None, true) => "administrator",
                (None, false) => "enabled",
            };
            let last = user.last_login_at.map_or_else(|| "never".to_owned(), |at| Timestamp::from(at).to_string());
            let (name, email) = (&user.username, &user.email);
            write!(f, "\n{name:<NAME_WIDTH$} {email:<EMAIL_WIDTH$} {state:<STATE_WIDTH$} ")?;
            write!(f, "{servers:>7} {sessions:>8} {last}")?;
        }
        Ok(())
    }
}
