//! The streams of clients that do not take what a terminal shows, or never learn what resumes it.

use signalbox::registry::AgentStream;
use signalbox::registry::terminal::{Holder, Intent, KeptRequest, TERMINAL_CREDIT};
use signalbox_protocol::agent::{AgentMessage, ServiceMessage, TerminalOutput, TerminalSize, TerminalStart};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;

const SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// A terminal at an agent that shows what the test wants.
struct Scene {
    site: Site,
    agent: FakeAgent,
    terminal_id: Uuid,
    holder: Holder,
}

impl Scene {
    /// Returns the scene, and the stream of the first client.
    async fn start() -> (Self, AgentStream) {
        let site = Site::start().await;
        let mut agent = site.agent().await;
        let holder = Holder { user_id: site.owner.id, token_id: None, secret_digest: vec![1; 32], asker: None };
        let terminal_id = Uuid::now_v7();
        let start = TerminalStart {
            stream_id: terminal_id,
            size: SIZE,
            credit: Some(TERMINAL_CREDIT),
            by: None,
            asker: None,
            signed: None,
        };
        let request = KeptRequest::Start { stream_id: Uuid::now_v7(), start: start.clone(), holder: holder.clone() };
        let stream = site.service.state.registry.open_kept(site.server_id, request).unwrap();
        assert_eq!(agent.next().await, ServiceMessage::TerminalStart(start));
        (Self { site, agent, terminal_id, holder }, stream)
    }

    fn resume(&self, stream_id: Uuid) -> AgentStream {
        let (terminal_id, holder) = (self.terminal_id, self.holder.clone());
        let request =
            KeptRequest::Resume { stream_id, terminal_id, holder, size: SIZE, offset: 0, intent: Intent::Take };
        self.site.service.state.registry.open_kept(self.site.server_id, request).unwrap()
    }

    async fn show(&mut self, data: &str) {
        let output = TerminalOutput { stream_id: self.terminal_id, data: data.to_owned(), offset: None };
        self.agent.send(&AgentMessage::TerminalOutput(output)).await;
    }

    /// The next message to the agent that is not about credit.
    async fn next(&mut self) -> ServiceMessage {
        loop {
            match self.agent.next().await {
                ServiceMessage::Credit { .. } => {}
                other => return other,
            }
        }
    }
}

/// Reads so many bytes.
async fn read(stream: &mut AgentStream, bytes: usize) -> String {
    let mut shown = String::new();
    while shown.len() < bytes {
        match stream.next().await {
            Some(AgentMessage::TerminalOutput(output)) => shown.push_str(&output.data),
            other => panic!("expected output, got {other:?}"),
        }
    }
    shown
}

#[actix_web::test]
async fn a_client_that_does_not_take_the_output_is_lost_and_comes_back() {
    let (mut scene, mut stalled) = Scene::start().await;
    stalled.closer().unwrap().keep();
    let mut written = String::new();
    for number in 0..1_100 {
        let line = format!("{number}\r\n");
        scene.show(&line).await;
        written.push_str(&line);
    }
    // What came before was handled.
    scene.agent.store(1, vec![sample_aged(1)]).await;

    while stalled.next().await.is_some() {}
    let over = stalled.outcome().await.unwrap_err();
    let mut stream = scene.resume(Uuid::now_v7());

    assert_eq!(over.code(), "terminal_detached");
    assert_eq!(read(&mut stream, written.len()).await, written);
    assert_eq!(scene.next().await, ServiceMessage::TerminalResize { stream_id: scene.terminal_id, size: SIZE });
    scene.show("$ ").await;
    assert_eq!(read(&mut stream, 2).await, "$ ");
}

#[actix_web::test]
async fn what_a_displaced_client_types_and_closes_is_not_the_terminal() {
    let (mut scene, first) = Scene::start().await;
    let (first_id, second_id) = (first.stream_id(), Uuid::now_v7());
    let second = scene.resume(second_id);
    assert_eq!(scene.next().await, ServiceMessage::TerminalResize { stream_id: scene.terminal_id, size: SIZE });

    let type_in = |stream_id, data: &str| ServiceMessage::TerminalInput { stream_id, data: data.to_owned() };
    first.link().send(type_in(first_id, "of the first")).await.unwrap();
    drop(first);
    second.link().send(type_in(second_id, "of the second")).await.unwrap();

    // The agent knows no terminal with the first id, and keeps the one that it has.
    assert_eq!(scene.next().await, type_in(first_id, "of the first"));
    assert_eq!(scene.next().await, ServiceMessage::TerminalStop { stream_id: first_id });
    assert_eq!(scene.next().await, type_in(scene.terminal_id, "of the second"));
}

#[actix_web::test]
async fn a_terminal_that_nobody_can_resume_ends_with_its_first_stream() {
    let (mut scene, stream) = Scene::start().await;

    drop(stream);

    assert_eq!(scene.next().await, ServiceMessage::TerminalStop { stream_id: scene.terminal_id });
}
