//! Commands whose way to the service fails.

use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::relay::Relay;
use crate::sign::Scene;
use crate::support::{Agent, Running, Site, eventually};
use crate::terminal::Terminal;

/// Asks for the whole output of a command. What follows is the id of its server, which begins with the time.
const OUTPUT_REQUEST: &str = "GET /api/v1/commands/0";
const BAD_GATEWAY: &str = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const UPGRADE_REFUSED: &str = "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n";
const TOO_SOON: &str = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
const UNKNOWN_ERROR: &str = "HTTP/1.1 520 Unknown Error\r\ncontent-length: 0\r\n\r\n";
pub const NO_ANSWER: &str = "";

/// A way to the service on which requests that begin like `caught` get another answer, or none: all of them, or the first.
pub struct Interceptor {
    address: SocketAddr,
    count: Arc<AtomicUsize>,
}

impl Interceptor {
    pub async fn start(site: &Site, caught: &'static str, answer: &'static str) -> Self {
        Self::start_for(usize::MAX, site, caught, answer).await
    }

    async fn start_for(most: usize, site: &Site, caught: &'static str, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, count) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (target, counter) = (site.url.trim_start_matches("http://").to_owned(), Arc::clone(&count));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, counter) = (target.clone(), Arc::clone(&counter));
                tokio::spawn(async move {
                    let Ok(service) = TcpStream::connect(target).await else { return };
                    // How it ends is for both sides to see.
                    let _ = pass_on(client, service, caught, answer, (&counter, most)).await;
                });
            }
        });
        Self { address, count }
    }

    /// The address of the service, on this way.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The program, on this way.
    fn command(&self, site: &Site, arguments: &[&str]) -> Command {
        let mut command = site.command(arguments);
        command.env("SIGNALBOX_URL", self.url());
        command
    }

    /// How many requests were caught.
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub async fn until_caught(&self) {
        eventually("a request is caught", async || (self.count() > 0).then_some(())).await;
    }
}

async fn pass_on(
    mut client: TcpStream,
    mut service: TcpStream,
    caught: &str,
    answer: &str,
    (counter, most): (&AtomicUsize, usize),
) -> io::Result<()> {
    let (mut request, mut response) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            count = client.read(&mut request) => {
                let bytes = &request[..count?];
                if bytes.is_empty() {
                    return Ok(());
                }
                if !bytes.starts_with(caught.as_bytes()) || counter.load(Ordering::Relaxed) >= most {
                    service.write_all(bytes).await?;
                    continue;
                }
                counter.fetch_add(1, Ordering::Relaxed);
                if answer == NO_ANSWER {
                    // Until the client gives up.
                    return tokio::io::copy(&mut client, &mut tokio::io::sink()).await.map(drop);
                }
                client.write_all(answer.as_bytes()).await?;
            }
            count = service.read(&mut response) => {
                let bytes = &response[..count?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

/// A command that runs until the test has ended.
pub fn endless(agent: &Agent) -> String {
    format!("while [ -e {} ]; do sleep 1; done", agent.state.path().display())
}

/// The id of the last command that was run on a server.
pub async fn newest_command(site: &Site, agent: &Agent) -> String {
    let commands = site.get(&format!("/commands/{}", agent.server_id)).await;
    commands[0]["command_id"].as_str().unwrap().to_owned()
}

/// A server that asks for a signature of Ada, and the call that runs a command there if there are enough signatures.
async fn signed() -> (Scene, Agent, Vec<String>) {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let agent = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let key = scene.key("ada");
    let words = ["exec", "--clock-skew", "0s", "--sign", &key, "--await-approval", "--yes", "web-1", "--", "true"];
    (scene, agent, words.map(str::to_owned).into())
}

#[tokio::test]
async fn results_are_shown_where_whole_outputs_cannot_be_read() {
    let site = Site::start().await;
    let mut agents = Vec::new();
    for name in ["web-1", "web-2"] {
        agents.push(site.agent(name, &["production"], &["--commands", "on"]).await);
    }
    let way = Interceptor::start(&site, OUTPUT_REQUEST, BAD_GATEWAY).await;

    let running = Running::start(way.command(&site, &["exec", "--tag", "production", "--", "seq 1 2000"]));
    let outcome = running.outcome().await;

    let whole: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    let preview = &whole[..4096];
    let expected = format!("── 2 servers: web-1, web-2\n{preview}\n(a part of the output is missing)\n");
    assert_eq!(outcome.done(), expected);
    assert_eq!(way.count(), 1, "a service that is away is asked once");
}

#[tokio::test]
async fn ctrl_c_ends_the_wait_for_whole_outputs() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let way = Interceptor::start(&site, OUTPUT_REQUEST, NO_ANSWER).await;
    let running = Running::start(way.command(&site, &["exec", "--tag", "production", "--", "seq 1 2000"]));
    way.until_caught().await;

    running.signal("INT");
    let outcome = running.outcome().await;

    outcome.refused(130, "interrupted; the batch has ended\n");
    assert!(outcome.stdout.ends_with("\n(a part of the output is missing)\n"), "{outcome:?}");
}

#[tokio::test]
async fn ctrl_c_ends_the_wait_for_the_result_of_a_command() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let way = Interceptor::start(&site, OUTPUT_REQUEST, NO_ANSWER).await;
    let running = Running::start(way.command(&site, &["exec", "web-1", "-o", "json", "--", "exit 3"]));
    way.until_caught().await;

    running.signal("INT");
    let outcome = running.outcome().await;

    let id = newest_command(&site, &agent).await;
    outcome.refused(130, &format!("interrupted; the command {id} has ended (failed, exit code 3)\n"));
}

#[tokio::test]
async fn ctrl_c_ends_the_wait_for_what_to_do_about_a_refused_batch() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &[]).await;
    let way = Interceptor::start(&site, "GET /api/v1/servers/0", NO_ANSWER).await;
    let running = Running::start(way.command(&site, &["exec", "--tag", "production", "--", "true"]));
    way.until_caught().await;

    running.signal("INT");
    let outcome = running.outcome().await;

    outcome.refused(130, "interrupted; the batch has ended; it did not succeed on 1 of 1 server\n");
    assert!(outcome.stdout.starts_with("── web-1 (failed"), "{outcome:?}");
}

#[tokio::test]
async fn ctrl_c_ends_the_wait_for_what_became_of_refused_signatures() {
    let scene = Scene::start().await;
    let keys = ["ada", "ada-again", "ben"].map(|name| scene.keygen.generate(name, "ed25519", ""));
    let signers = [("ada", keys[0].as_str()), ("ada", keys[1].as_str()), ("ben", keys[2].as_str())];
    let _agent = scene.server("web-1", "web-1", &signers, "approvals = 2\n").await;
    let way = Interceptor::start(&scene.site, "GET /api/v1/commands/approvals/0", NO_ANSWER).await;
    let (ada, again) = (scene.key("ada"), scene.key("ada-again"));
    let sign = ["exec", "--clock-skew", "0s", "--sign", &ada, "--sign", &again, "--await-approval", "--yes"];
    let running = Running::start(way.command(&scene.site, &[&sign[..], &["web-1", "--", "true"]].concat()));
    way.until_caught().await;

    running.signal("INT");
    let outcome = running.outcome().await;

    outcome.refused(130, "interrupted; the batch has ended; it did not succeed on 1 of 1 server\n");
}

#[tokio::test]
async fn a_batch_can_be_left_while_the_service_is_away() {
    let mut site = Site::start().await;
    let agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let script = endless(&agent);
    let mut terminal = Terminal::start(&site, &["exec", "--tag", "production", "--timeout", "10m", "--", &script]);
    terminal.until("0 of 1 server done").await;
    let batches = site.get("/commands/batches").await;
    let id = batches[0]["id"].as_str().unwrap();

    site.crash();
    terminal.signal("INT");
    terminal.until("cannot cancel: cannot reach the service: ").await;
    terminal.signal("INT");

    assert_eq!(terminal.ended().await, Some(130));
    terminal.until(&format!("the batch {id} continues at the service")).await;
}

#[tokio::test]
async fn a_batch_that_does_not_end_in_time_after_sigterm_is_named_with_its_page() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let way = Interceptor::start(&site, "GET /api/v1/commands/batches/0", NO_ANSWER).await;
    let script = endless(&agent);
    let exec = ["exec", "--tag", "production", "--timeout", "10m", "--", &script];
    let running = Running::start(way.command(&site, &exec));
    way.until_caught().await;

    running.signal("TERM");
    let outcome = running.outcome().await;

    let batches = site.get("/commands/batches").await;
    let id = batches[0]["id"].as_str().unwrap();
    let page = format!("{}/run/{id}", way.url());
    outcome.refused(143, &format!("ended by SIGTERM; the batch {id} continues at the service: see {page}\n"));
}

#[tokio::test]
async fn a_command_can_be_left_while_its_socket_gets_no_answer() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let way = Interceptor::start(&site, "GET /api/v1/ws/commands/", NO_ANSWER).await;
    let script = endless(&agent);
    let running = Running::start(way.command(&site, &["exec", "web-1", "--timeout", "10m", "--", &script]));
    way.until_caught().await;

    running.signal("INT");
    running.until("cancelling; press Ctrl-C again").await;
    running.signal("INT");
    let outcome = running.outcome().await;

    let id = newest_command(&site, &agent).await;
    outcome.refused(130, &format!("interrupted; the command {id} may still run\n"));
    assert_eq!(way.count(), 1, "no press of Ctrl-C waits until the socket is given up");
}

#[tokio::test]
async fn a_command_whose_output_cannot_be_followed_may_still_run() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let way = Interceptor::start(&site, "GET /api/v1/ws/commands/", UPGRADE_REFUSED).await;

    let outcome = Running::start(way.command(&site, &["exec", "web-1", "--", "true"])).outcome().await;

    let id = newest_command(&site, &agent).await;
    outcome.refused(1, &format!("; the command {id} may still run"));
}

#[tokio::test]
async fn a_proxy_that_refuses_for_a_moment_is_asked_again_when_it_says() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;

    for (place, caught, answer) in [
        (&["web-1"][..], "GET /api/v1/ws/commands/", UNKNOWN_ERROR),
        (&["web-1"], "GET /api/v1/ws/commands/", TOO_SOON),
        (&["--tag", "production"], "GET /api/v1/commands/batches/0", TOO_SOON),
    ] {
        let way = Interceptor::start_for(1, &site, caught, answer).await;
        let begin = Instant::now();
        let arguments = [&["exec"], place, &["--", "echo done"]].concat();
        let outcome = Running::start(way.command(&site, &arguments)).outcome().await;

        assert!(outcome.done().ends_with("done\n"), "{outcome:?}");
        assert_eq!(way.count(), 1, "{answer}");
        assert!(answer != TOO_SOON || begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn a_busy_service_does_not_say_whether_a_batch_was_started() {
    let site = Site::start().await;
    let way = Interceptor::start(&site, "POST /api/v1/commands", UNAVAILABLE).await;

    let outcome = Running::start(way.command(&site, &["exec", "--tag", "production", "--", "true"])).outcome().await;

    outcome.refused(1, "it is not known whether the batch was started");
}

#[tokio::test]
async fn a_lost_answer_does_not_say_whether_a_command_was_started() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;

    for (place, what) in [(&["web-1"][..], "command"), (&["--tag", "production"][..], "batch")] {
        relay.lose_answer("POST /api/v1/commands");
        let mut command = site.command(&[&["exec"], place, &["--", "true"]].concat());
        command.env("SIGNALBOX_URL", relay.url());
        let outcome = Running::start(command).outcome().await;

        assert!(relay.has_lost_answer());
        outcome.refused(1, &format!("it is not known whether the {what} was started"));
    }
}

#[tokio::test]
async fn a_lost_answer_does_not_say_whether_a_signed_command_was_started() {
    let (scene, _agent, call) = signed().await;
    let relay = Relay::start(scene.site.url.trim_start_matches("http://")).await;
    relay.lose_answer("POST /api/v1/commands/approvals");

    let mut command = scene.site.command(&call.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("SIGNALBOX_URL", relay.url());
    let outcome = Running::start(command).outcome().await;

    assert!(relay.has_lost_answer());
    outcome.refused(1, "it is not known whether the command was started");
}

#[tokio::test]
async fn a_signed_command_that_was_started_continues_where_its_batch_cannot_be_read() {
    let (scene, _agent, call) = signed().await;
    let way = Interceptor::start(&scene.site, "GET /api/v1/commands/batches/0", BAD_GATEWAY).await;

    let command = way.command(&scene.site, &call.iter().map(String::as_str).collect::<Vec<_>>());
    let outcome = Running::start(command).outcome().await;

    let batches = scene.site.get("/commands/batches").await;
    let id = batches[0]["id"].as_str().unwrap();
    outcome.refused(1, &format!("; the batch {id} continues at the service"));
}

#[tokio::test]
async fn where_no_connection_comes_about_no_batch_was_started() {
    let site = Site::start().await;
    let mut command = site.command(&["exec", "--tag", "production", "--", "true"]);
    command.env("SIGNALBOX_URL", "http://127.0.0.1:1");

    let outcome = Running::start(command).outcome().await;

    outcome.refused(1, "; the batch was not started\n");
}
