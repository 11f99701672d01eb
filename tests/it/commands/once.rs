//! Whatever breaks, in any order: no command reaches an agent twice, and each comes to an end.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_protocol::agent::ServiceMessage;
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::site::Site;

/// Steps of one story.
const STEPS: u32 = 40;

/// The next number of a sequence that is the same in every run (Knuth, MMIX).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// An agent with a memory that outlives its connections.
struct Machine {
    connection: Option<FakeAgent>,
    /// How often each command was received.
    received: BTreeMap<Uuid, u32>,
    /// Received, and its result not acknowledged.
    held: BTreeSet<Uuid>,
    seq: u64,
}

impl Machine {
    async fn connect(&mut self, site: &Site) {
        let held: Vec<_> = self.held.iter().copied().collect();
        self.connection = Some(site.agent_holding(&held).await);
    }

    /// Takes in everything that the service has sent.
    async fn listen(&mut self) {
        let Some(agent) = &mut self.connection else { return };
        self.seq += 1;
        for message in agent.settle(self.seq).await {
            match message {
                ServiceMessage::Execute(execute) => {
                    *self.received.entry(execute.command_id).or_default() += 1;
                    self.held.insert(execute.command_id);
                }
                ServiceMessage::ResultAck { command_id } => {
                    self.held.remove(&command_id);
                }
                other => panic!("unasked: {other:?}"),
            }
        }
    }

    /// Reports the result of a command that it holds, whether or not it arrives.
    async fn report(&mut self, number: u64) {
        let Some(agent) = &mut self.connection else { return };
        let Some(id) = self.held.iter().nth(number as usize % self.held.len().max(1)).copied() else { return };
        agent.send_result(id, signalbox_protocol::agent::CommandStatus::Succeeded, Some(0)).await;
    }

    /// Breaks the connection, with whatever is on its way.
    fn vanish(&mut self) {
        if let Some(agent) = self.connection.take() {
            agent.socket.abort();
        }
    }
}

async fn story(seed: u64) {
    let mut site = Site::start().await;
    let mut dice = Dice(seed);
    let mut machine = Machine { connection: None, received: BTreeMap::new(), held: BTreeSet::new(), seq: 0 };
    let mut accepted = BTreeSet::new();

    for _ in 0..STEPS {
        match dice.roll(10) {
            0..4 => {
                let call = site.post(site.commands_path() + "?wait=0").json(serde_json::json!({"command": "true"}));
                let answer = call.send().await;
                if answer.status == 200 {
                    accepted.insert(crate::support::uuid_of(&answer.json()["command_id"]));
                }
            }
            4..6 => machine.listen().await,
            6 => machine.report(dice.roll(64)).await,
            7 => machine.vanish(),
            8 if dice.roll(3) == 0 => {
                machine.connection = None;
                site = site.restart().await;
            }
            _ if machine.connection.is_none() => machine.connect(&site).await,
            _ => {}
        }
    }
    machine.vanish();
    machine.connect(&site).await;
    machine.listen().await;
    while !machine.held.is_empty() {
        machine.report(0).await;
        machine.listen().await;
    }

    assert!(machine.received.values().all(|times| *times == 1), "seed {seed}: {:?}", machine.received);
    assert!(machine.received.keys().all(|id| accepted.contains(id)), "seed {seed}: what runs was accepted");
    let history = site.commands().await;
    for command in &history {
        let id = crate::support::uuid_of(&command["command_id"]);
        let is_received = machine.received.contains_key(&id);
        let was_never_sent = command["error"]["code"] == "agent_offline";
        let expected = match (is_received, was_never_sent) {
            (true, _) => "succeeded",
            (false, true) => "failed",
            (false, false) => "lost",
        };
        assert_eq!(command["status"], expected, "seed {seed}: {command}");
    }
    assert!(accepted.len() <= history.len(), "seed {seed}: nothing that was accepted is missing");
}

#[actix_web::test]
async fn whatever_breaks_no_command_runs_twice_and_each_comes_to_an_end() {
    for seed in 0..3 {
        story(seed).await;
    }
}
