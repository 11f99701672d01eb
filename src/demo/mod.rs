//! `signalbox demo`: a service with an account and a live agent of this machine, ready within a minute.

mod simulated;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::audit::{Actor, Entry, action};
use crate::auth::account::{AccountError, Origin};
use crate::auth::api_key;
use crate::auth::setup::Via;
use crate::change::Change;
use crate::config::Config;
use crate::effects;
use crate::random;
use crate::startup::{Application, StartupError};
use crate::state::State;
use crate::store::{NewApiKey, NewServer, NewUser, PageRequest, ServerFilter, StoreError};

const USERNAME: &str = "demo";
const EMAIL: &str = "demo@example.com";

/// How long the greeting waits for the first sample.
const FIRST_SAMPLE: Duration = Duration::from_secs(10);

/// A running demo.
pub struct Demo {
    address: SocketAddr,
    password: SecretString,
    server_id: Uuid,
    service: JoinHandle<Result<(), StartupError>>,
    stop_service: oneshot::Sender<()>,
    stop_agents: watch::Sender<bool>,
    agents: Vec<JoinHandle<()>>,
    _directory: Option<TempDir>,
}

/// Starts the service, the account, this machine's agent and `fleet` simulated servers.
pub async fn prepare(listen: SocketAddr, data_dir: Option<PathBuf>, fleet: u16) -> anyhow::Result<Demo> {
    let directory = data_dir.is_none().then(tempfile::tempdir).transpose().context("cannot make a data directory")?;
    let data_dir = data_dir.or_else(|| directory.as_ref().map(|directory| directory.path().to_owned()));
    let config = Config { listen, ..Config::new(data_dir.unwrap_or_default()) };
    let application = Application::build(config).await?;
    let (address, state) = (application.address(), application.state());

    let (stop_service, stopped) = oneshot::channel();
    let service = actix_web::rt::spawn(application.run_until_stopped(async move { _ = stopped.await }));
    let (user_id, password) = account(&state).await?;

    let (stop_agents, stopping) = watch::channel(false);
    let mut agents = Vec::new();
    let (server_id, key) = server(&state, user_id, "this machine").await?;
    let config = signalbox_agent::Config::new(&dial(address), key.expose_secret())?;
    agents.push(actix_web::rt::spawn(watch_over(signalbox_agent::run(config, until(stopping.clone())))));
    for number in 1..=fleet {
        let (_, key) = server(&state, user_id, &format!("simulated-{number:03}")).await?;
        let config = signalbox_agent::Config::new(&dial(address), key.expose_secret())?;
        let agent = simulated::run(config, number, until(stopping.clone()));
        agents.push(actix_web::rt::spawn(watch_over(agent)));
    }

    let first_sample = async {
        while state.fleet.latest(server_id).is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if tokio::time::timeout(FIRST_SAMPLE, first_sample).await.is_err() {
        tracing::warn!("the agent of this machine has not sent a sample yet");
    }
    Ok(Demo { address, password, server_id, service, stop_service, stop_agents, agents, _directory: directory })
}

impl Demo {
    /// The text for newcomers: the address, the account, and commands to paste.
    pub fn greeting(&self) -> String {
        let (base, password, id) = (dial(self.address), self.password.expose_secret(), self.server_id);
        format!(
            r#"
Signalbox is running, and an agent of this machine is connected. Open the address in a browser:

  address    {base}
  user name  {USERNAME}
  password   {password}
  API        {base}/docs   (Authorize signs you in)   {base}/redoc

Or paste this to watch this machine's numbers move:

  TOKEN=$(curl -s {base}/api/v1/auth/login -d username={USERNAME} -d password={password} \
    | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s -H "Authorization: Bearer $TOKEN" {base}/api/v1/servers; echo
  for i in 1 2 3; do curl -s -H "Authorization: Bearer $TOKEN" {base}/api/v1/metrics/{id} \
    | grep -oE '"(cpu|memory)_percent":[0-9.]+|"timestamp":"[^"]*"'; sleep 5; done

Press Ctrl-C to stop it."#
        )
    }

    /// Runs until `stop` resolves.
    pub async fn run_until_stopped(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::pin!(stop);
        let mut service = self.service;
        tokio::select! {
            () = &mut stop => {}
            ended = &mut service => return Ok(ended??),
        }
        _ = self.stop_agents.send(true);
        for agent in self.agents {
            agent.await?;
        }
        _ = self.stop_service.send(());
        Ok(service.await??)
    }
}

/// The demo's account with a new password; it may exist already if the data directory was kept.
async fn account(state: &State) -> anyhow::Result<(Uuid, SecretString)> {
    let password = SecretString::from(format!("{:016x}", u64::from_be_bytes(random::bytes::<8>()?)));
    let new = NewUser {
        id: Uuid::now_v7(),
        email: EMAIL.to_owned(),
        username: USERNAME.to_owned(),
        full_name: "Demo".to_owned(),
        password_hash: String::new(),
    };
    let origin = Origin {
        user_agent: "signalbox demo".to_owned(),
        address: Ipv4Addr::LOCALHOST.to_string(),
        connection: 0,
        via: Via::Direct,
    };
    let setup_code = Some(state.accounts.setup.code().clone());
    match state.accounts.register(new, password.clone(), setup_code, origin).await {
        Ok((user, _)) => Ok((user.id, password)),
        Err(AccountError::Store(StoreError::UsernameTaken | StoreError::EmailTaken)) => {
            let user = state.store.find_user_by_name(USERNAME).await?.context("the demo account has disappeared")?;
            let entry = Entry::new(action::PASSWORD_RESET, user.id, Actor::command_line());
            let ended = state.accounts.set_password(entry, password.clone(), None, None).await?;
            effects::commit(state, Change::PasswordChanged { user_id: user.id, ended }).await;
            Ok((user.id, password))
        }
        Err(error) => Err(error.into()),
    }
}

/// A server with this name and a new key.
async fn server(state: &State, owner_id: Uuid, name: &str) -> anyhow::Result<(Uuid, SecretString)> {
    let filter = ServerFilter { text: Some(name.to_owned()), ..ServerFilter::default() };
    let found = state.store.list_servers(owner_id, filter, PageRequest { limit: 1, offset: 0 }).await?;
    let server_id = match found.items.into_iter().next() {
        Some(server) => server.record.id,
        None => {
            let new = NewServer {
                owner_id,
                name: name.to_owned(),
                host: Ipv4Addr::LOCALHOST.to_string(),
                port: 22,
                description: String::new(),
                tags: vec!["demo".to_owned()],
            };
            state.store.create_server(new, Actor::command_line()).await?.record.id
        }
    };
    let fresh = api_key::generate()?;
    let new = NewApiKey {
        owner_id,
        server_id,
        name: "demo".to_owned(),
        prefix: fresh.prefix,
        digest: fresh.digest,
        expires_at: None,
    };
    state.store.create_api_key(new, Actor::command_line()).await?;
    Ok((server_id, fresh.key))
}

/// The address to connect to a service that listens on `listening`.
fn dial(listening: SocketAddr) -> String {
    let ip = if listening.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { listening.ip() };
    format!("http://{}", SocketAddr::new(ip, listening.port()))
}

async fn until(mut stopping: watch::Receiver<bool>) {
    _ = stopping.wait_for(|stop| *stop).await;
}

async fn watch_over(agent: impl Future<Output = signalbox_agent::Exit>) {
    let exit = agent.await;
    if exit != signalbox_agent::Exit::Stopped {
        tracing::error!(%exit, "an agent of the demo has ended");
    }
}
