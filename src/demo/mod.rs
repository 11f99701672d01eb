//! `signalbox demo`: a service with an account, a live agent of this machine, and a simulated fleet with a past.
//!
//! - `cast`: the servers, their roles and troubles; `services`: their containers
//! - `course`, `gauges`, `processes`, `containers`, `journal`, `shell`: what they measure and answer, as pure functions of the
//!   server and the time, with `incidents` and `noise`
//! - `past`: writes their history; `stories`, `chronicle`: what people saw and did; `boards`: the charts that they saved
//! - `unfinished`: makes good for a start that was ended before their past was written
//! - `agent`: their agents, which speak the real protocol and run nothing
//! - `account`: accounts, servers and keys

mod account;
mod agent;
mod boards;
mod cast;
mod chronicle;
mod containers;
mod course;
mod gauges;
mod incidents;
mod journal;
mod noise;
mod past;
mod processes;
mod services;
mod shell;
mod stories;
mod unfinished;

use std::collections::HashSet;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use uuid::{Builder, Uuid};

use self::agent::{SimulatedAgent, Site};
use self::cast::{Machine, fleet};
use self::course::Course;
use self::past::Simulated;
use self::unfinished::Mark;
use crate::audit::Actor;
use crate::config::{Config, DataKind};
use crate::startup::{Application, StartupError};
use crate::state::State;
use crate::store::NewServer;

/// How long the greeting waits for the first sample.
const FIRST_SAMPLE: Duration = Duration::from_secs(10);

/// What is said while the author writes.
const WRITING: &str =
    "30 days of history are being written: charts that reach back beyond today fill up in about a minute.\n";

/// The name of the server that is real.
const THIS_MACHINE: &str = "this machine";

/// A running demo.
pub struct Demo {
    address: SocketAddr,
    state: State,
    service: JoinHandle<Result<(), StartupError>>,
    stop_service: oneshot::Sender<()>,
    stop_agents: watch::Sender<bool>,
    agents: Vec<JoinHandle<()>>,
    /// Writes the history of the simulated servers.
    author: Option<JoinHandle<()>>,
    _directory: Option<TempDir>,
}

/// What the stories are about, and who tells them.
struct Scene<'a> {
    state: &'a State,
    course: Course,
    owner_id: Uuid,
    visitor: Actor,
    colleague: Actor,
    servers: &'a [Simulated],
}

/// The tasks of the simulated servers.
struct Fleet {
    simulated: Vec<JoinHandle<()>>,
    author: Option<JoinHandle<()>>,
}

/// Creates the simulated servers that do not exist yet, with their past, and starts their agents.
async fn start_fleet(
    state: &State,
    owner_id: Uuid,
    count: u16,
    address: SocketAddr,
    stop_agents: &watch::Sender<bool>,
) -> anyhow::Result<Fleet> {
    if count == 0 {
        return Ok(Fleet { simulated: Vec::new(), author: None });
    }
    let mark = Mark::of(state);
    let is_unfinished = mark.is_set().await?;
    let mut known = account::servers(state, owner_id).await?;
    if is_unfinished {
        unfinished::remove_untold(state, owner_id, &mut known).await?;
    }
    let machines: Vec<Arc<Machine>> = fleet(count).into_iter().map(Arc::new).collect();
    // Every story refers to the first start, which the servers of kept data remember.
    let first = machines.iter().find_map(|machine| known.get(&machine.name));
    let began = first.map(|server| Timestamp::from(server.record.created_at).plus_millis(past::DAYS * 86_400_000));
    let is_first = began.is_none();
    if is_first {
        mark.set().await?;
    }
    let course = Course { began_ms: began.unwrap_or_else(Timestamp::now).as_millis() };
    let (mut servers, mut new, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for machine in machines {
        let server_id = match known.get(&machine.name) {
            Some(server) => server.record.id,
            None => {
                let id = account::create(state, simulated_server(owner_id, &machine)).await?;
                new.push((id, machine.clone()));
                id
            }
        };
        keys.push(account::key(state, owner_id, server_id).await?);
        servers.push((server_id, machine));
    }
    let colleague_id = account::colleague(state).await?;
    let scene = Scene {
        state,
        course,
        owner_id,
        visitor: actor(owner_id, &account::VISITOR),
        colleague: actor(colleague_id, &account::COLLEAGUE),
        servers: &new,
    };
    // Servers that join those of an earlier start have their values from now on, because the stories are written only once.
    if is_first {
        for ((server_id, machine), (key_id, _)) in servers.iter().zip(&keys) {
            if !incidents::is_heard(machine, 0.0) {
                let site = Site { course, machine: machine.clone(), stopped: HashSet::new() };
                chronicle::leave(&scene, *server_id, *key_id, &site.info()).await?;
            }
        }
        state.store.backdate_accounts(&[owner_id, colleague_id], course.at(-24.0 * past::DAYS as f64)).await?;
        stories::write(&scene).await?;
        boards::write(&scene).await?;
        // Late, because the agents connect after it.
        chronicle::events(&scene).await?;
        // Last, because they say that all stories are there.
        chronicle::commands(&scene).await?;
    }
    let mut simulated = Vec::new();
    for ((_, machine), (_, key)) in servers.iter().zip(keys) {
        if incidents::is_heard(machine, 0.0) {
            let site = Site { course, machine: machine.clone(), stopped: HashSet::new() };
            let agent = agent::run(SimulatedAgent { site, address, key }, until(stop_agents.subscribe()));
            simulated.push(actix_web::rt::spawn(agent));
        }
    }
    let has_no_past = is_first || is_unfinished;
    let author = has_no_past.then(|| actix_web::rt::spawn(write_past(state.clone(), course, servers, mark)));
    Ok(Fleet { simulated, author })
}

async fn write_past(state: State, course: Course, servers: Vec<Simulated>, mark: Mark) {
    let began = Instant::now();
    match past::write(&state.store, course, &servers).await {
        Ok(with_month) => {
            let seconds = began.elapsed().as_secs_f64();
            tracing::info!("made {} days of history for {with_month} servers in {seconds:.1} s", past::DAYS);
            if let Err(error) = mark.remove().await {
                tracing::warn!(%error, "the next start on this data writes the history again");
            }
        }
        Err(error) => tracing::error!(%error, "the history of the simulated servers could not be written"),
    }
}

fn this_machine(owner_id: Uuid) -> NewServer {
    NewServer {
        owner_id,
        name: THIS_MACHINE.to_owned(),
        host: Ipv4Addr::LOCALHOST.to_string(),
        port: 22,
        description: "Real: the machine that runs this demo".to_owned(),
        tags: vec!["real".to_owned()],
    }
}

fn simulated_server(owner_id: Uuid, machine: &Machine) -> NewServer {
    NewServer {
        owner_id,
        name: machine.name.clone(),
        host: machine.address.clone(),
        port: 22,
        description: machine.description.clone(),
        tags: machine.tags.clone(),
    }
}

fn actor(user_id: Uuid, person: &account::Person) -> Actor {
    let address = Ipv4Addr::LOCALHOST.to_string();
    Actor { user_id: Some(user_id), username: person.username.into(), login_id: None, token: None, address }
}

/// An id that sorts by this time.
fn id_at(at: Timestamp, salt: u64) -> Uuid {
    let mut bytes = [0; 10];
    let mixed = noise::mix(salt, at.as_millis().cast_unsigned()).to_be_bytes();
    bytes.iter_mut().zip(mixed).for_each(|(byte, mixed)| *byte = mixed);
    Builder::from_unix_timestamp_millis(at.as_millis().unsigned_abs(), &bytes).into_uuid()
}

impl Demo {
    /// Starts the service on the data of an earlier demo, or on new data. Refuses the data of a service.
    pub async fn start(listen: SocketAddr, data_dir: Option<PathBuf>) -> anyhow::Result<Self> {
        let directory = data_dir.is_none().then(tempfile::tempdir).transpose().with_context(|| {
            let parent = std::env::temp_dir();
            format!("cannot make a data directory in {}: choose another one with --data-dir", parent.display())
        })?;
        let data_dir = data_dir.or_else(|| directory.as_ref().map(|directory| directory.path().to_owned()));
        let config = Config { listen, data_kind: DataKind::Demo, ..Config::new(data_dir.unwrap_or_default()) };
        let application = Application::build(config).await?;
        let (address, state) = (application.address(), application.state());
        let (stop_service, stopped) = oneshot::channel();
        let service = actix_web::rt::spawn(application.run_until_stopped(async move { _ = stopped.await }));
        Ok(Self {
            address,
            state,
            service,
            stop_service,
            stop_agents: watch::Sender::new(false),
            agents: Vec::new(),
            author: None,
            _directory: directory,
        })
    }

    /// Adds the accounts, this machine's agent and `fleet` simulated servers. Returns the text for newcomers.
    pub async fn furnish(&mut self, fleet: u16) -> anyhow::Result<String> {
        let (address, state) = (self.address, &self.state);
        let (owner_id, password) = account::visitor(state).await?;

        let known = account::servers(state, owner_id).await?;
        let server_id = match known.get(THIS_MACHINE) {
            Some(server) => server.record.id,
            None => account::create(state, this_machine(owner_id)).await?,
        };
        let (_, key) = account::key(state, owner_id, server_id).await?;
        let config = signalbox_agent::Config::new(&dial(address), key.expose_secret())?;
        let agent = signalbox_agent::run(config, until(self.stop_agents.subscribe()));
        self.agents.push(actix_web::rt::spawn(watch_over(agent)));
        let Fleet { simulated, author } =
            start_fleet(state, owner_id, fleet, reachable(address), &self.stop_agents).await?;
        self.agents.extend(simulated);
        self.author = author;

        let first_sample = async {
            while state.fleet.latest(server_id).is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(FIRST_SAMPLE, first_sample).await.is_err() {
            tracing::warn!("the agent of this machine has not sent a sample yet");
        }
        let is_writing = self.author.as_ref().is_some_and(|author| !author.is_finished());
        let history = if is_writing { WRITING } else { "" };
        Ok(greeting(address, &password, server_id, fleet, history))
    }

    /// Runs until `stop` resolves.
    pub async fn run_until_stopped(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::select! {
            () = stop => self.stop().await,
            ended = &mut self.service => Ok(ended??),
        }
    }

    /// Ends the agents and the service, and removes the data, unless a directory was named for it.
    pub async fn stop(self) -> anyhow::Result<()> {
        // Only data that is kept has a next start, and that writes what is missing.
        if let Some(author) = self.author {
            author.abort();
            // An error says that it was interrupted.
            _ = author.await;
        }
        _ = self.stop_agents.send(true);
        for agent in self.agents {
            agent.await?;
        }
        _ = self.stop_service.send(());
        Ok(self.service.await??)
    }
}

/// The text for newcomers: the address, the account, and commands to paste. `history` is a line, or empty.
fn greeting(address: SocketAddr, password: &SecretString, id: Uuid, fleet: u16, history: &str) -> String {
    let (base, password, username) = (dial(address), password.expose_secret(), account::VISITOR.username);
    let simulated = match fleet {
        0 => String::new(),
        1 => " 1 other server is simulated.".to_owned(),
        count => format!(" {count} other servers are simulated."),
    };
    format!(
        r#"
Signalbox is running, and an agent of this machine is connected.{simulated}
{history}Open the address in a browser:

  address    {base}
  user name  {username}
  password   {password}
  API        {base}/docs   (Authorize signs you in)   {base}/redoc

Or paste this to watch this machine's numbers move:

  TOKEN=$(curl -s {base}/api/v1/auth/login -d username={username} -d password={password} \
    | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s -H "Authorization: Bearer $TOKEN" {base}/api/v1/servers; echo
  for i in 1 2 3; do curl -s -H "Authorization: Bearer $TOKEN" {base}/api/v1/metrics/{id} \
    | grep -oE '"(cpu|memory)_percent":[0-9.]+|"timestamp":"[^"]*"'; sleep 5; done

Press Ctrl-C to stop it."#
    )
}

/// The address to connect to a service that listens on `listening`.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = if listening.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { listening.ip() };
    SocketAddr::new(ip, listening.port())
}

fn dial(listening: SocketAddr) -> String {
    format!("http://{}", reachable(listening))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_their_times() {
        let [early, late] = [1_000, 2_000].map(|ms| id_at(Timestamp::from_millis(ms), 7));

        assert!(early < late);
        assert_eq!(early.get_version_num(), 7);
    }

    #[test]
    fn the_greeting_says_that_history_is_being_written() {
        let (address, password) = (SocketAddr::from((Ipv4Addr::LOCALHOST, 8_000)), SecretString::from("secret"));
        let said = |history| greeting(address, &password, Uuid::nil(), 24, history);

        assert!(said(WRITING).contains("simulated.\n30 days of history are being written"));
        assert!(said("").contains("simulated.\nOpen the address"));
    }
}
