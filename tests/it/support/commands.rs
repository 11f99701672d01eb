//! Commands as an owner runs them and as an agent sees them.

use std::net::SocketAddr;

use actix_web::rt::{self, task::JoinHandle};
use serde_json::{Value, json};
use signalbox_protocol::agent::{
    AgentMessage, Auth, CommandOutput, CommandResult, CommandStatus, Execute, RequestError, Response, ServiceMessage,
    Stream,
};
use signalbox_protocol::{Encoding, Timestamp};
use uuid::Uuid;

use super::agent::{FakeAgent, auth, sample_at};
use super::rest::{Answer, Call};
use super::site::Site;
use super::{eventually, in_time, uuid_of};

/// A request under way.
pub type Pending = JoinHandle<Answer>;

/// The final answer.
pub async fn answered(pending: Pending) -> Answer {
    in_time("the answer to a command", pending).await.unwrap()
}

impl Site {
    pub fn commands_path(&self) -> String {
        format!("/commands/{}", self.server_id)
    }

    /// The owner's call, to be completed.
    pub fn post(&self, path: impl AsRef<str>) -> Call {
        self.service.client.post(path).bearer(&self.owner.token)
    }

    /// Runs a command in the background.
    pub fn run(&self, command: &str) -> Pending {
        self.run_body("", json!({ "command": command }))
    }

    /// Runs `body` in the background, with a query such as `?wait=1`.
    pub fn run_body(&self, query: &str, body: Value) -> Pending {
        rt::spawn(self.post(self.commands_path() + query).json(body).send())
    }

    /// Begins a command without waiting for it. Returns its id.
    pub async fn begin(&self, command: &str) -> Uuid {
        self.begin_on(self.server_id, command).await
    }

    pub async fn begin_on(&self, server_id: Uuid, command: &str) -> Uuid {
        let call = self.post(format!("/commands/{server_id}?wait=0"));
        uuid_of(&call.json(json!({ "command": command })).expect(200).await["command_id"])
    }

    /// A command that its agent has just begun.
    pub async fn running(&self, agent: &mut FakeAgent, command: &str) -> Uuid {
        let id = self.begin(command).await;
        assert_eq!(agent.expect_execute().await.command_id, id);
        id
    }

    /// The present state of a command.
    pub async fn command(&self, id: Uuid) -> Value {
        self.read(&format!("{}/{id}", self.commands_path())).await
    }

    /// The command as soon as it has this status.
    pub async fn until_command(&self, id: Uuid, status: &str) -> Value {
        eventually(status, || async {
            let command = self.command(id).await;
            (command["status"] == status).then_some(command)
        })
        .await
    }

    /// The history, newest first.
    pub async fn commands(&self) -> Vec<Value> {
        self.read(&format!("{}?limit=500", self.commands_path())).await.as_array().unwrap().clone()
    }

    /// Asks in the background that a command be ended.
    pub fn cancel(&self, id: Uuid) -> Pending {
        rt::spawn(self.post(format!("{}/{id}/cancel", self.commands_path())).send())
    }

    /// The server's agent after a break, which reports the commands that it holds.
    pub async fn agent_holding(&self, commands: &[Uuid]) -> FakeAgent {
        FakeAgent::holding(self.service.address, &self.key, commands).await
    }
}

impl FakeAgent {
    /// Authenticated, with a report of the commands that it holds.
    pub async fn holding(address: SocketAddr, key: &str, commands: &[Uuid]) -> Self {
        eventually("the agent is let in", async || {
            let mut agent = Self::connect(address, Encoding::MessagePack).await;
            let AgentMessage::Auth(greeting) = auth(key) else { unreachable!() };
            agent.send(&AgentMessage::Auth(Auth { commands: Some(commands.to_vec()), ..greeting })).await;
            let ServiceMessage::AuthResponse(answer) = agent.next().await else { panic!("expected an auth_response") };
            Self::is_let_in(&answer).then_some(agent)
        })
        .await
    }

    /// The next message, which must be a command to run.
    pub async fn expect_execute(&mut self) -> Execute {
        match self.next().await {
            ServiceMessage::Execute(execute) => execute,
            other => panic!("expected an execute, got {other:?}"),
        }
    }

    /// The next message, which must end this command.
    pub async fn expect_cancel(&mut self, command_id: Uuid) {
        assert_eq!(self.next().await, ServiceMessage::Cancel { command_id });
    }

    /// The next message, which must say that this command's result is stored.
    pub async fn expect_result_ack(&mut self, command_id: Uuid) {
        assert_eq!(self.next().await, ServiceMessage::ResultAck { command_id });
    }

    /// A piece of output right after the one before it.
    pub async fn send_output(&mut self, command_id: Uuid, stream: Stream, data: &str) {
        self.send_piece(CommandOutput { command_id, stream, data: data.to_owned(), offset: None }).await;
    }

    /// A piece of standard output that begins after this many bytes of output.
    pub async fn send_output_at(&mut self, command_id: Uuid, offset: u64, data: &str) {
        let stream = Stream::Stdout;
        self.send_piece(CommandOutput { command_id, stream, data: data.to_owned(), offset: Some(offset) }).await;
    }

    async fn send_piece(&mut self, piece: CommandOutput) {
        self.send(&AgentMessage::CommandOutput(piece)).await;
    }

    /// The end of a command after 12 ms.
    pub async fn send_result(&mut self, command_id: Uuid, status: CommandStatus, exit_code: Option<i32>) {
        let status = status.name().to_owned();
        let result = CommandResult { command_id, status, exit_code, duration_ms: 12, truncated: false };
        self.send(&AgentMessage::CommandResult(result)).await;
    }

    /// Ends a command well, and waits until that is stored.
    pub async fn finish(&mut self, command_id: Uuid) {
        self.send_result(command_id, CommandStatus::Succeeded, Some(0)).await;
        self.expect_result_ack(command_id).await;
    }

    /// Does not run a command, for the sake of its signatures.
    pub async fn refuse_signatures(&mut self, command_id: Uuid, reason: &str) {
        let error = RequestError::new("agent_refused", "the signatures do not suffice");
        let error = RequestError { reason: Some(reason.to_owned()), ..error };
        self.send(&AgentMessage::Response(Response::new(command_id, Err(error)))).await;
    }

    /// Does not run a command.
    pub async fn refuse(&mut self, command_id: Uuid, code: &str, detail: &str) {
        let refusal = Response::new(command_id, Err(RequestError::new(code, detail)));
        self.send(&AgentMessage::Response(refusal)).await;
    }

    /// The remaining messages of the service until it has read everything that was sent to it.
    pub async fn settle(&mut self, seq: u64) -> Vec<ServiceMessage> {
        self.send_metrics(seq, vec![sample_at(Timestamp::now())]).await;
        let mut said = Vec::new();
        loop {
            match self.next().await {
                ServiceMessage::Ack { seq: acknowledged } if acknowledged == seq => return said,
                other => said.push(other),
            }
        }
    }

    /// Asserts that the service has nothing to say.
    pub async fn expect_silence(&mut self, seq: u64) {
        let said = self.settle(seq).await;
        assert!(said.is_empty(), "unasked: {said:?}");
    }
}
