//! An agent that claims to have run every command, and to have some containers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use signalbox_protocol::agent::{
    AgentMessage, CommandOutput, CommandResult, CommandStatus, Execute, Request, RequestError, Response,
    ServiceMessage, Stream,
};
use signalbox_protocol::container::Container;
use signalbox_protocol::{Encoding, Timestamp};
use uuid::Uuid;

use super::AgentSocket;
use crate::stop::Stop;

/// The output of every command.
pub const OUTPUT: &str = "Linux bench.example.com 6.1.0 x86_64 GNU/Linux\n";

/// Containers that each agent claims to have.
pub const CONTAINERS: usize = 10;

/// When the agents of a run received their commands.
#[derive(Debug)]
pub struct CommandTimes {
    start: Instant,
    last_micros: AtomicU64,
}

/// One agent, before it runs.
#[derive(Debug)]
pub struct Obedient {
    pub socket: AgentSocket,
    pub told: Arc<CommandTimes>,
}

/// The commands that an agent received.
#[derive(Debug, Default)]
pub struct Obeyed {
    pub commands: u64,
    /// Commands that it received a second time.
    pub repeated: u64,
    /// Results that the service says it has stored.
    pub settled: u64,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

impl CommandTimes {
    pub fn new() -> Self {
        Self { start: Instant::now(), last_micros: AtomicU64::new(0) }
    }

    /// When the last of them received its command.
    pub fn last(&self) -> Instant {
        self.start + Duration::from_micros(self.last_micros.load(Ordering::Relaxed))
    }

    fn note(&self) {
        let micros = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

impl Obedient {
    /// Obeys until `stop` fires.
    pub async fn run(mut self, mut stop: Stop) -> Obeyed {
        let mut obeyed = Obeyed::default();
        let mut seen = HashSet::new();
        let ended = loop {
            let message = tokio::select! {
                () = stop.requested() => break Ok(()),
                message = self.socket.next() => message,
            };
            let done = match message {
                Ok(ServiceMessage::Execute(execute)) => self.execute(execute, &mut seen, &mut obeyed).await,
                Ok(ServiceMessage::Request(request)) => self.answer(&request).await,
                Ok(ServiceMessage::ResultAck { .. }) => {
                    obeyed.settled += 1;
                    Ok(())
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                break Err(error);
            }
        };
        obeyed.failure = ended.err().map(|error| format!("{error:#}"));
        self.socket.close().await;
        obeyed
    }

    async fn answer(&mut self, request: &Request) -> anyhow::Result<()> {
        let outcome = match request.method.as_str() {
            "docker.list" => Ok(serde_json::to_value(containers())?),
            _ => Err(RequestError::new("unsupported", "this agent knows its containers alone")),
        };
        let response = AgentMessage::Response(Response::new(request.request_id, outcome));
        self.socket.send(Encoding::MessagePack.encode(&response)?).await
    }

    async fn execute(&mut self, execute: Execute, seen: &mut HashSet<Uuid>, obeyed: &mut Obeyed) -> anyhow::Result<()> {
        let command_id = execute.command_id;
        if !seen.insert(command_id) {
            obeyed.repeated += 1;
            return Ok(());
        }
        obeyed.commands += 1;
        self.told.note();
        let output = CommandOutput { command_id, stream: Stream::Stdout, data: OUTPUT.to_owned(), offset: Some(0) };
        let result = CommandResult {
            command_id,
            status: CommandStatus::Succeeded.name().to_owned(),
            exit_code: Some(0),
            duration_ms: 1,
            truncated: false,
        };
        self.socket.send(Encoding::MessagePack.encode(&AgentMessage::CommandOutput(output))?).await?;
        self.socket.send(Encoding::MessagePack.encode(&AgentMessage::CommandResult(result))?).await
    }
}

/// The answer of an agent to a request for its containers.
fn containers() -> Vec<Container> {
    let container = |number: usize| Container {
        id: format!("{number:064x}"),
        name: format!("service-{number}"),
        image: "registry.example.com/service:1.2.3".to_owned(),
        state: "running".to_owned(),
        status: "Up 3 days (healthy)".to_owned(),
        created_at: Timestamp::now(),
        ..Container::default()
    };
    (0..CONTAINERS).map(container).collect()
}

impl Obeyed {
    pub fn merge(&mut self, other: Self) {
        self.commands += other.commands;
        self.repeated += other.repeated;
        self.settled += other.settled;
        self.failure = self.failure.take().or(other.failure);
    }
}
