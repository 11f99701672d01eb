//! The demo's accounts, servers and keys. All of them may exist already, if the data directory was kept.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use anyhow::Context;
use secrecy::SecretString;
use uuid::Uuid;

use crate::audit::{Actor, Entry, action};
use crate::auth::account::{AccountError, Credentials, Origin};
use crate::auth::api_key;
use crate::auth::setup::Via;
use crate::change::Change;
use crate::effects;
use crate::random;
use crate::state::State;
use crate::store::{NewApiKey, NewServer, NewUser, PageRequest, Server, ServerFilter, StoreError, Visibility};

/// Rows that one query lists.
const PAGE: u64 = 500;

/// All of a short list.
pub const ALL: PageRequest = PageRequest { limit: PAGE, offset: 0 };

/// A person with an account.
pub struct Person {
    pub username: &'static str,
    pub email: &'static str,
    pub full_name: &'static str,
}

/// Who uses the demo.
pub const VISITOR: Person = Person { username: "demo", email: "demo@example.com", full_name: "Demo" };

/// A colleague, who has acknowledged alerts and run commands.
pub const COLLEAGUE: Person = Person { username: "mira", email: "mira@example.com", full_name: "Mira Okafor" };

fn password() -> anyhow::Result<SecretString> {
    Ok(SecretString::from(format!("{:016x}", u64::from_be_bytes(random::bytes::<8>()?))))
}

fn origin() -> Origin {
    Origin {
        user_agent: "signalbox demo".to_owned(),
        address: Ipv4Addr::LOCALHOST.to_string(),
        connection: 0,
        via: Via::Direct,
    }
}

/// The visitor's account with a new password.
pub async fn visitor(state: &State) -> anyhow::Result<(Uuid, SecretString)> {
    let new_password = password()?;
    match register(state, &VISITOR, new_password.clone()).await {
        Ok(id) => Ok((id, new_password)),
        Err(AccountError::Store(StoreError::UsernameTaken | StoreError::EmailTaken)) => {
            let id = known(state, &VISITOR).await?;
            let entry = Entry::new(action::PASSWORD_RESET, id, Actor::command_line());
            let ended = state.accounts.set_password(entry, new_password.clone(), None, None).await?;
            effects::commit(state, Change::PasswordChanged { user_id: id, ended }).await;
            Ok((id, new_password))
        }
        Err(error) => Err(error.into()),
    }
}

/// The colleague's account. Nobody knows its password.
pub async fn colleague(state: &State) -> anyhow::Result<Uuid> {
    match register(state, &COLLEAGUE, password()?).await {
        Ok(id) => Ok(id),
        Err(AccountError::Store(StoreError::UsernameTaken | StoreError::EmailTaken)) => known(state, &COLLEAGUE).await,
        Err(error) => Err(error.into()),
    }
}

async fn register(state: &State, person: &Person, password: SecretString) -> Result<Uuid, AccountError> {
    let new = NewUser {
        id: Uuid::now_v7(),
        email: person.email.to_owned(),
        username: person.username.to_owned(),
        full_name: person.full_name.to_owned(),
        password_hash: String::new(),
    };
    let setup_code = Some(state.accounts.setup.code().clone());
    let shown = Credentials { setup_code, ..Credentials::default() };
    let account = state.accounts.prepare(new, password, shown, origin()).await?;
    let (user, _) = state.accounts.register(account).await?;
    Ok(user.id)
}

async fn known(state: &State, person: &Person) -> anyhow::Result<Uuid> {
    let user = state.store.find_user_by_name(person.username).await?;
    Ok(user.context("an account of the demo has disappeared")?.id)
}

/// All servers of an account, by their names.
pub async fn servers(state: &State, owner_id: Uuid) -> Result<HashMap<String, Server>, StoreError> {
    let mut all = HashMap::new();
    loop {
        let page = PageRequest { limit: PAGE, offset: all.len() as u64 };
        let found = state.store.list_servers(&Visibility::of_owner(owner_id), ServerFilter::default(), page).await?;
        let is_last = (found.items.len() as u64) < PAGE;
        all.extend(found.items.into_iter().map(|server| (server.record.name.clone(), server)));
        if is_last {
            return Ok(all);
        }
    }
}

/// Creates a server.
pub async fn create(state: &State, new: NewServer) -> Result<Uuid, StoreError> {
    Ok(state.store.create_server(new, Actor::command_line()).await?.record.id)
}

/// Deletes a server that has no history.
pub async fn delete(state: &State, owner_id: Uuid, server_id: Uuid) -> Result<(), StoreError> {
    state.store.delete_server(owner_id, server_id, Actor::command_line()).await?;
    effects::commit(state, Change::ServerDeleted { server_id, owner_id }).await;
    Ok(())
}

/// A new key of a server, with its id.
pub async fn key(state: &State, owner_id: Uuid, server_id: Uuid) -> anyhow::Result<(Uuid, SecretString)> {
    let fresh = api_key::generate()?;
    let new = NewApiKey {
        owner_id,
        server_id,
        name: "demo".to_owned(),
        prefix: fresh.prefix,
        digest: fresh.digest.to_vec(),
        expires_at: None,
    };
    let stored = state.store.create_api_key(new, Actor::command_line()).await?;
    Ok((stored.id, fresh.token))
}
