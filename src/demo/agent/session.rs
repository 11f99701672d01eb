//! What a simulated agent says on one connection, and what it remembers from one to the next.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_protocol::agent::{
    AgentMessage, CommandOutput, CommandResult, CommandStatus, Event, Execute, Metrics, RequestError, Response,
    ServiceMessage, Stream,
};
use signalbox_protocol::container::STATES_KIND;
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use super::super::cast::Incident;
use super::super::containers::states;
use super::super::course::container_id;
use super::super::incidents::flapping_runs;
use super::super::noise::between;
use super::super::processes::top;
use super::super::services::FLAPPING;
use super::super::shell::{self, Host};
use super::super::{containers, gauges};
use super::streams::Streams;
use super::{AgentError, Site, message, requests};

/// The most commands that an agent holds; more are refused.
const MAX_HELD: usize = 64;

/// The most samples that it sends after an outage.
const MAX_MISSED: i64 = 360;

/// What outlasts a connection.
pub struct Memory {
    pub site: Site,
    seq: u64,
    /// The time of the newest sample of each message that is not acknowledged.
    unacknowledged: VecDeque<(u64, i64)>,
    /// The time of the newest sample that is durable.
    durable_ms: Option<i64>,
    held: Vec<Held>,
}

/// A command whose result the service has not stored.
struct Held {
    command_id: Uuid,
    due: Instant,
    messages: Vec<AgentMessage>,
    is_sent: bool,
}

impl Memory {
    pub fn new(site: Site) -> Self {
        Self { site, seq: 0, unacknowledged: VecDeque::new(), durable_ms: None, held: Vec::new() }
    }

    pub fn held_commands(&self) -> Vec<Uuid> {
        self.held.iter().map(|held| held.command_id).collect()
    }
}

/// The service's request for samples between those of the interval. It is read by itself, because not every service sends it.
#[derive(Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
enum Live {
    Watched { for_seconds: f64 },
}

/// One connection.
pub struct Session<'a> {
    memory: &'a mut Memory,
    interval: Duration,
    next_sample: Instant,
    /// Until when somebody watches.
    live_until: Option<Instant>,
    listed_minute: i64,
    was_up: Option<bool>,
    streams: Streams,
    outbox: Vec<String>,
}

impl<'a> Session<'a> {
    /// Begins with what the service has missed.
    pub fn begin(memory: &'a mut Memory, interval: Duration) -> Result<Self, AgentError> {
        memory.held.iter_mut().for_each(|held| held.is_sent = false);
        memory.unacknowledged.clear();
        let described = gauges::described(&memory.site.machine);
        let missed = missed(memory, interval);
        let mut session = Self {
            memory,
            interval,
            next_sample: Instant::now(),
            live_until: None,
            listed_minute: 0,
            was_up: None,
            streams: Streams::default(),
            outbox: Vec::new(),
        };
        described.iter().try_for_each(|described| session.send(described))?;
        if !missed.is_empty() {
            session.send_samples(missed)?;
        }
        session.tell_states(now_ms())?;
        session.tick()?;
        Ok(session)
    }

    pub fn seed(&self) -> u64 {
        self.memory.site.machine.seed
    }

    pub fn take_outbox(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outbox)
    }

    /// Does what is due.
    pub fn tick(&mut self) -> Result<(), AgentError> {
        let (now, at_ms) = (Instant::now(), now_ms());
        if now >= self.next_sample {
            self.next_sample = now + self.interval.saturating_sub(Duration::from_millis(20));
            let sample = self.sample(at_ms);
            self.send_samples(vec![sample])?;
        } else if self.live_until.is_some_and(|until| now < until) {
            let sample = self.memory.site.sample(at_ms);
            self.outbox.push(message("live", &json!({ "sample": sample })));
        }
        self.flap(at_ms)?;
        self.flow(at_ms)?;
        self.send_due()
    }

    fn sample(&mut self, at_ms: i64) -> Sample {
        let mut sample = self.memory.site.sample(at_ms);
        let minute = at_ms.div_euclid(60_000);
        if minute != self.listed_minute {
            self.listed_minute = minute;
            sample.processes = Some(top(&self.memory.site.machine, &sample));
        }
        sample
    }

    fn send_samples(&mut self, samples: Vec<Sample>) -> Result<(), AgentError> {
        self.memory.seq += 1;
        let seq = self.memory.seq;
        if let Some(last) = samples.last() {
            self.memory.unacknowledged.push_back((seq, last.timestamp.as_millis()));
        }
        self.send(&AgentMessage::Metrics(Metrics { seq, samples, sent_at: Some(Timestamp::now()) }))
    }

    /// Takes in a message of the service.
    pub fn receive(&mut self, text: &str) -> Result<(), AgentError> {
        if let Ok(Live::Watched { for_seconds }) = serde_json::from_str(text) {
            let lasts = Duration::from_secs_f64(for_seconds.clamp(0.0, 3_600.0));
            self.live_until = Some(Instant::now() + lasts);
            return Ok(());
        }
        // What a newer service says beyond this is ignored, as the protocol wants it.
        let Ok(Decoded::Known(received)) = Encoding::Json.decode::<ServiceMessage>(text.as_bytes()) else {
            return Ok(());
        };
        match received {
            ServiceMessage::Ack { seq } => self.acknowledge(seq),
            ServiceMessage::Execute(execute) => self.execute(execute)?,
            ServiceMessage::Cancel { command_id } => self.cancel(command_id),
            ServiceMessage::ResultAck { command_id } => {
                self.memory.held.retain(|held| held.command_id != command_id);
            }
            ServiceMessage::Request(request) => {
                let outcome = requests::answer(&mut self.memory.site, &request.method, &request.params, now_ms());
                let is_change = outcome.is_ok() && requests::is_change(&request.method);
                self.send(&AgentMessage::Response(Response::new(request.request_id, outcome)))?;
                if is_change {
                    self.tell_change(&request.method, &request.params)?;
                }
            }
            ServiceMessage::LogsStart(start) => {
                let refusal = self.streams.start(&self.memory.site, start, now_ms());
                refusal.iter().try_for_each(|refusal| self.send(&AgentMessage::Response(refusal.clone())))?;
                self.flow(now_ms())?;
            }
            ServiceMessage::LogsStop { stream_id } => self.streams.stop(stream_id),
            ServiceMessage::Credit { stream_id, bytes } => {
                self.streams.credit(stream_id, bytes);
                self.flow(now_ms())?;
            }
            ServiceMessage::TerminalStart(start) => {
                let detail = "a simulated server has no terminal: run a command instead";
                let refusal = Response::new(start.stream_id, Err(RequestError::new("agent_refused", detail)));
                self.send(&AgentMessage::Response(refusal))?;
            }
            // Answers are made at once, so there is nothing to cancel, and no terminal was opened.
            _ => {}
        }
        self.send_due()
    }

    fn acknowledge(&mut self, seq: u64) {
        while let Some((_, at_ms)) = self.memory.unacknowledged.pop_front_if(|(sent, _)| *sent <= seq) {
            self.memory.durable_ms = self.memory.durable_ms.max(Some(at_ms));
        }
    }

    fn execute(&mut self, execute: Execute) -> Result<(), AgentError> {
        let Execute { command_id, command, timeout_seconds, .. } = execute;
        if self.memory.held.iter().any(|held| held.command_id == command_id) {
            return Ok(());
        }
        if self.memory.held.len() >= MAX_HELD {
            let busy = RequestError::new("agent_busy", "the agent has too many commands");
            return self.send(&AgentMessage::Response(Response::new(command_id, Err(busy))));
        }
        let at_ms = now_ms();
        let Site { course, machine, .. } = &self.memory.site;
        let answer = shell::run(Host { course: *course, machine, at_ms }, &command);
        let limit_ms = u64::from(timeout_seconds) * 1_000;
        let (status, exit_code, takes_ms) = match answer.exit_code {
            _ if answer.takes_ms > limit_ms => (CommandStatus::TimedOut, 124, limit_ms),
            0 => (CommandStatus::Succeeded, 0, answer.takes_ms),
            other => (CommandStatus::Failed, other, answer.takes_ms),
        };
        let mut messages = Vec::new();
        let mut offset = 0;
        for (stream, data) in [(Stream::Stdout, answer.stdout), (Stream::Stderr, answer.stderr)] {
            let bytes = data.len() as u64;
            if bytes > 0 {
                let output = CommandOutput { command_id, stream, data, offset: Some(offset) };
                messages.push(AgentMessage::CommandOutput(output));
            }
            offset += bytes;
        }
        let duration_ms = takes_ms + between(machine.seed, at_ms.cast_unsigned(), 3, 40);
        messages.push(result(command_id, status, Some(exit_code), duration_ms));
        let due = Instant::now() + Duration::from_millis(takes_ms);
        self.memory.held.push(Held { command_id, due, messages, is_sent: false });
        Ok(())
    }

    fn cancel(&mut self, command_id: Uuid) {
        let running = self.memory.held.iter_mut().find(|held| held.command_id == command_id && !held.is_sent);
        if let Some(held) = running {
            held.messages = vec![result(command_id, CommandStatus::Cancelled, Some(143), 0)];
            held.due = Instant::now();
        }
    }

    fn send_due(&mut self) -> Result<(), AgentError> {
        let now = Instant::now();
        for held in self.memory.held.iter_mut().filter(|held| !held.is_sent && held.due <= now) {
            held.is_sent = true;
            for message in &held.messages {
                self.outbox.push(serde_json::to_string(message)?);
            }
        }
        Ok(())
    }

    /// Sends the lines of logs for which there is credit.
    fn flow(&mut self, at_ms: i64) -> Result<(), AgentError> {
        for lines in self.streams.flow(&self.memory.site, at_ms) {
            self.send(&AgentMessage::LogLines(lines))?;
        }
        Ok(())
    }

    /// Tells when the container that dies every few minutes died or started.
    fn flap(&mut self, at_ms: i64) -> Result<(), AgentError> {
        let site = &self.memory.site;
        if site.machine.incident != Incident::Flapping || site.stopped.contains(FLAPPING) {
            return Ok(());
        }
        let is_up = flapping_runs(at_ms);
        if self.was_up.replace(is_up).is_some_and(|was_up| was_up != is_up) {
            self.tell(FLAPPING, if is_up { "start" } else { "die" }, at_ms)?;
            self.tell_states(at_ms)?;
        }
        Ok(())
    }

    /// Tells what somebody did to a container.
    fn tell_change(&mut self, method: &str, params: &Value) -> Result<(), AgentError> {
        let named = params.get("container_id").and_then(Value::as_str).unwrap_or_default();
        let Some(service) = containers::find(&self.memory.site.machine, named) else { return Ok(()) };
        let action = method.trim_start_matches("docker.");
        self.tell(service.name, action, now_ms())?;
        self.tell_states(now_ms())
    }

    fn tell(&mut self, name: &str, action: &str, at_ms: i64) -> Result<(), AgentError> {
        let machine = &self.memory.site.machine;
        let image = containers::find(machine, name).map(|service| service.image);
        let mut fields = json!({
            "action": action, "container_id": container_id(machine, name), "name": name, "image": image,
            "timestamp": Timestamp::from_millis(at_ms),
        });
        if let Some(fields) = fields.as_object_mut().filter(|_| action == "die") {
            fields.insert("exit_code".to_owned(), 1.into());
            fields.insert("requested".to_owned(), false.into());
        }
        let Value::Object(fields) = fields else { return Ok(()) };
        self.send(&AgentMessage::Event(Event { kind: "container".to_owned(), fields }))
    }

    fn tell_states(&mut self, at_ms: i64) -> Result<(), AgentError> {
        let listed = requests::listed(&self.memory.site, at_ms);
        let Value::Object(fields) = serde_json::to_value(states(&listed, at_ms))? else { return Ok(()) };
        self.send(&AgentMessage::Event(Event { kind: STATES_KIND.to_owned(), fields }))
    }

    fn send(&mut self, message: &AgentMessage) -> Result<(), AgentError> {
        self.outbox.push(serde_json::to_string(message)?);
        Ok(())
    }
}

fn result(command_id: Uuid, status: CommandStatus, exit_code: Option<i32>, duration_ms: u64) -> AgentMessage {
    let status = status.name().to_owned();
    AgentMessage::CommandResult(CommandResult { command_id, status, exit_code, duration_ms, truncated: false })
}

/// The samples since the last durable one. They are not kept, because they can be made again.
fn missed(memory: &Memory, interval: Duration) -> Vec<Sample> {
    let apart = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1_000);
    let Some(last) = memory.durable_ms else { return Vec::new() };
    let until = now_ms();
    let first = (last + apart).max(until - MAX_MISSED * apart);
    let times = (0..MAX_MISSED).map(|place| first + place * apart).take_while(|at| at + apart < until);
    times.map(|at| memory.site.sample(at)).collect()
}

fn now_ms() -> i64 {
    Timestamp::now().as_millis()
}
