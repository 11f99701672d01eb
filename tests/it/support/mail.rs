//! A real SMTP server, aiosmtpd, which `scripts/test-setup` installs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::authority::Authority;
use super::eventually;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/test-tools/bin/python");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/smtp_server.py");

/// Ends with the test.
pub struct MailServer {
    child: Child,
    happened: Arc<Mutex<Vec<Value>>>,
    pub port: u64,
}

impl MailServer {
    /// A server without TLS.
    pub async fn plain(told: Value) -> Self {
        Self::start("none", told).await
    }

    /// One that wants STARTTLS (`starttls`) or speaks TLS from the first byte (`smtps`), as `localhost`.
    pub async fn secure(tls: &str, authority: &Authority, mut told: Value) -> Self {
        let (certificate, key) = authority.files("localhost");
        told["certificate"] = json!(certificate);
        told["key"] = json!(key);
        Self::start(tls, told).await
    }

    async fn start(tls: &str, mut told: Value) -> Self {
        told["tls"] = json!(tls);
        let mut child = Command::new(PYTHON)
            .args(["-W", "ignore", SCRIPT, &told.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{PYTHON}: {error}: run scripts/test-setup first"));
        let happened = Arc::new(Mutex::new(Vec::new()));
        let (lines, log) = (BufReader::new(child.stdout.take().unwrap()).lines(), happened.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let mut server = Self { child, happened, port: 0 };
        server.port = eventually("the mail server listens", || {
            let port = server.events("port").first().and_then(|event| event["port"].as_u64());
            async move { port }
        })
        .await;
        server
    }

    /// Everything with this field so far.
    fn events(&self, name: &str) -> Vec<Value> {
        self.happened.lock().unwrap().iter().filter(|event| event.get(name).is_some()).cloned().collect()
    }

    /// The mails that reached it, once there are `count`.
    pub async fn mails(&self, count: usize) -> Vec<Value> {
        self.wait("mail", count).await
    }

    /// The attempts to authenticate, once there are `count`.
    pub async fn attempts(&self, count: usize) -> Vec<Value> {
        self.wait("user", count).await
    }

    async fn wait(&self, name: &str, count: usize) -> Vec<Value> {
        let events = eventually("the mail server got as many", || {
            let events = self.events(name);
            async move { (events.len() >= count).then_some(events) }
        })
        .await;
        assert_eq!(events.len(), count, "{events:?}");
        events
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        // It may have ended on its own, with an error that is in the test's output.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
