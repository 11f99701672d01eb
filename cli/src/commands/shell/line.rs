//! The terminal's way to the service. When it breaks, the service keeps the terminal for a while, and this comes back to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use super::keys::Keys;
use super::{print, size};
use crate::api::Api;
use crate::api::backoff::Backoff;
use crate::api::socket::Socket;
use crate::error::Failure;

/// The longest pause between two attempts: there are two minutes in all.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Errors after which the terminal may still be there. If it is not, the next attempt says so.
const PASSING: [&str; 5] = ["agent_disconnected", "agent_offline", "agent_timeout", "busy", "terminal_detached"];

pub struct Line<'a> {
    api: &'a Arc<Api>,
    path: String,
    ticket: Option<Ticket>,
    outage: Option<Outage>,
}

/// What resumes the terminal.
struct Ticket {
    terminal_id: Uuid,
    secret: String,
    kept_for: Duration,
}

/// From the loss of a connection until the service says that the terminal is there.
struct Outage {
    ends_at: Instant,
    backoff: Backoff,
}

/// The output that has been shown, in bytes. No message is shown twice, and none is missing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Shown(u64);

impl Shown {
    /// Output of a terminal that is kept says where it begins.
    pub fn add(&mut self, data: &str, offset: Option<u64>) {
        if let Some(offset) = offset {
            self.0 = offset.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        }
    }
}

impl<'a> Line<'a> {
    pub fn new(api: &'a Arc<Api>, server_id: Uuid) -> Self {
        Self { api, path: format!("/ws/terminal/{server_id}"), ticket: None, outage: None }
    }

    /// Opens the terminal, with what was signed for it.
    pub async fn open(&self, signed: Option<String>) -> Result<Socket, Failure> {
        let (columns, rows) = size();
        let mut query = vec![("columns", columns.to_string()), ("rows", rows.to_string()), ("keep", "true".to_owned())];
        query.extend(signed.map(|signed| ("signed", signed)));
        Socket::open(self.api, &self.path, &query).await
    }

    /// The service has the terminal, and keeps it. Returns whether it was away.
    pub fn kept(&mut self, terminal_id: Uuid, secret: String, kept_for: Duration) -> bool {
        self.ticket = Some(Ticket { terminal_id, secret, kept_for });
        self.outage.take().is_some()
    }

    /// Whether the terminal may still be there after an error of this code.
    pub fn survives(&self, code: &str) -> bool {
        self.ticket.is_some() && PASSING.contains(&code)
    }

    /// Comes back to the terminal. Text that is typed until then is dropped: it would arrive where nobody sees what it does.
    pub async fn reopen(&mut self, lost: &Failure, shown: Shown, keys: &mut Keys<'_>) -> Result<Socket, Failure> {
        let Self { api, path, ticket, outage } = self;
        let Some(ticket) = ticket else { return Err(ended(lost)) };
        if outage.is_none() {
            let seconds = ticket.kept_for.as_secs();
            print(&format!("\r\n[{lost}; reconnecting for up to {seconds} s, Ctrl-C gives up]\r\n"))?;
        }
        let outage = outage
            .get_or_insert_with(|| Outage { ends_at: Instant::now() + ticket.kept_for, backoff: Backoff::default() });
        loop {
            let left = outage.ends_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ended(lost));
            }
            let pause = outage.backoff.pause().min(LONGEST_PAUSE).min(left);
            let attempt = async {
                tokio::time::sleep(pause).await;
                ticket.resume(api, path, shown).await
            };
            tokio::select! {
                opened = attempt => match opened {
                    Err(failure) if failure.is_passing() => {}
                    opened => return opened,
                },
                () = keys.given_up() => {
                    let seconds = left.as_secs();
                    return Err(Failure::failed(format!("given up: the terminal ends within {seconds} s")));
                }
            }
        }
    }
}

impl Ticket {
    async fn resume(&self, api: &Arc<Api>, path: &str, Shown(offset): Shown) -> Result<Socket, Failure> {
        let (columns, rows) = size();
        let query = [("columns", columns.to_string()), ("rows", rows.to_string()), ("resume", "true".to_owned())];
        let mut socket = Socket::open(api, path, &query).await?;
        let data = json!({"terminal_id": self.terminal_id, "secret": self.secret, "offset": offset});
        socket.send(&json!({"type": "resume", "data": data})).await?;
        Ok(socket)
    }
}

fn ended(lost: &Failure) -> Failure {
    Failure::failed(format!("{lost}; the terminal has ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_counted_by_the_services_account() {
        let mut shown = Shown::default();

        shown.add("a€", Some(0));
        shown.add("b", Some(4));
        assert_eq!(shown, Shown(5));
        // A part was left out.
        shown.add("c", Some(100));
        assert_eq!(shown, Shown(101));
        shown.add("of a service that keeps nothing", None);
        assert_eq!(shown, Shown(101));
    }
}
