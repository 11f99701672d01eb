//! An attacker on the bus between instances, who hears everything and says what they like, and the real agent of a server that
//! asks for signatures.

use std::fs;
use std::time::Duration;

use async_nats::{Client, Message};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

use super::versions::{CallError, PeerRequest, read, written};
use super::{A, B, Scene};
use crate::support::commands::answered;
use crate::support::machine::Machine;
use crate::support::signers::Signers;
use crate::support::{PATIENCE, eventually};

/// An answer of an instance that has one comes sooner.
const ANSWERED_WITHIN: Duration = PATIENCE;

/// What is heard within this time of an order belongs to it.
const HEARD_WITHIN: Duration = Duration::from_millis(500);

/// What is heard differs from run to run; there were 614 and more with one bit of each byte.
const TRIES: usize = 500;

/// The bus, the machine, and how often the attacker has tried.
struct Attack {
    scene: Scene,
    bus: Client,
    machine: Machine,
    signers: Signers,
    tries: usize,
}

impl Attack {
    /// Runs a command through an instance that does not have the agent. Returns what was heard on the bus until it ended.
    async fn run_signed(&self, command: &str) -> Vec<Message> {
        let mut heard = self.bus.subscribe("signalbox.>").await.unwrap();
        self.bus.flush().await.unwrap();
        let payload = self.signers.payload(command, 300_000, &json!({}));
        let body = json!({ "command": command, "signed": self.signers.signed(&["ada"], &payload) });
        let path = format!("/commands/{}", self.scene.server_id());

        let result = self.scene.post(A, path).json(body).expect(200).await;

        assert_eq!(result["status"], "succeeded", "{result}");
        let mut messages = Vec::new();
        while let Ok(Some(message)) = timeout(HEARD_WITHIN, heard.next()).await {
            messages.push(message);
            if messages.len() >= 50 {
                break;
            }
        }
        messages
    }

    async fn say(&mut self, message: &Message, payload: Vec<u8>) {
        self.tries += 1;
        self.bus.publish(message.subject.clone(), payload.into()).await.unwrap();
    }

    /// Asks the instance that has the agent to call it.
    async fn call(&mut self, method: &str, params: Value) -> CallError {
        self.tries += 1;
        let subject = format!("signalbox.v1.agent.{}", self.scene.server_id());
        let ask =
            PeerRequest::Call { request_id: Uuid::now_v7(), method: method.to_owned(), params, timeout_ms: 50_000 };
        let answer = timeout(ANSWERED_WITHIN, self.bus.request(subject, written(&ask))).await.unwrap().unwrap();
        read::<Result<Value, CallError>>(&answer.payload).unwrap_err()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.machine.path("runs")).unwrap_or_default().lines().count()
    }
}

#[actix_web::test]
async fn who_has_the_bus_runs_nothing_on_a_server_that_asks_for_signatures() {
    let (scene, machine, files) = (Scene::start().await, Machine::new(), TempDir::new().unwrap());
    let signers = Signers::new();
    let policy = signers.write_policy(files.path(), "terminal = \"signed\"\ndocker = \"signed\"\n");
    let flags = ["--policy", &policy.display().to_string()];
    let _agent = machine.agent(scene.cluster.address(B), &scene.prepared.key, &flags);
    scene.until_reached(A).await;
    let bus = async_nats::connect(scene.cluster.nats.url()).await.unwrap();
    let mut attack = Attack { scene, bus, machine, signers, tries: 0 };
    let command = format!("echo run >>{}", attack.machine.path("runs").display());

    let heard = attack.run_signed(&command).await;

    assert!(!heard.is_empty(), "nothing was said on the bus");
    assert_eq!(attack.runs(), 1);
    for verb in ["start", "stop", "restart", "pause", "unpause"] {
        match attack.call(&format!("docker.{verb}"), json!({ "container_id": "web" })).await {
            CallError::Agent { code, .. } => assert_eq!(code, "agent_refused", "{verb}"),
            other => panic!("{verb}: {other:?}"),
        }
    }
    // All of it again, in another order, and then with each byte changed.
    for _ in 0..3 {
        for message in heard.iter().rev() {
            attack.say(message, message.payload.to_vec()).await;
        }
    }
    for message in &heard {
        for (place, bit) in (0..message.payload.len().min(400)).flat_map(|place| [(place, 1), (place, 0x80)]) {
            let mut altered = message.payload.to_vec();
            altered[place] ^= bit;
            attack.say(message, altered).await;
        }
    }
    attack.bus.flush().await.unwrap();

    // The instances still work, and the agent, too: what was said before has been heard.
    let path = format!("/commands/{}", attack.scene.server_id());
    let done = eventually("a command runs", async || {
        let payload = attack.signers.payload(&command, 300_000, &json!({}));
        let body = json!({ "command": command, "signed": attack.signers.signed(&["ada"], &payload) });
        let answer = attack.scene.post(A, &path).json(body).send().await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(done["status"], "succeeded", "{done}");
    assert_eq!(attack.runs(), 2, "once for each signed command");
    let unsigned = answered(attack.scene.run(A, &command)).await;
    assert_eq!((unsigned.status, &unsigned.json()["reason"]), (400, &json!("not_signed")), "{unsigned}");
    println!("{} tries on the bus", attack.tries);
    assert!(attack.tries >= TRIES, "{} tries", attack.tries);
}
