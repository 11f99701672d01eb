//! How long a delivery may take, stage by stage. Whatever bounds a whole delivery is computed from these numbers, so that
//! no limit cuts another one short.

use std::time::Duration;

use super::channel::Settings;

/// Redirects that are followed.
pub const MAX_REDIRECTS: u32 = 3;

/// Connections to a mail server in one attempt: a recipient on which one breaks is left out of the next.
pub const MAX_MAIL_SESSIONS: u32 = 3;

/// The commands before a mail: STARTTLS and the EHLO after it, and AUTH with its challenges.
const OPENING_COMMANDS: u32 = 5;

/// The longest that a mail server's last word is waited for when nothing depends on it.
pub const FAREWELL: Duration = Duration::from_secs(1);

/// An answer's body tells us nothing: it is read for so long, so that its connection can be used again.
pub const DRAIN: Duration = Duration::from_millis(500);

/// How long each stage of a delivery may take. What is not handed over yet can be repeated at no cost, so those stages
/// are shorter than RFC 5321, 4.5.3.2 has them; the last answer is waited for as long as it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The name, the connection and TLS.
    pub connect: Duration,
    /// From there to a mail server's greeting and its answer to EHLO: a late greeting keeps robots away.
    pub greeting: Duration,
    /// Each further command of a mail: MAIL, each recipient.
    pub command: Duration,
    /// The go-ahead for a mail's content.
    pub data: Duration,
    /// Writing a mail's content, and the answer to its final dot: servers look for viruses in between.
    pub dot: Duration,
    /// From an HTTP request to its answer's headers.
    pub answer: Duration,
    /// What a sender does besides waiting for others: composing, and writing to the outbox.
    pub own: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            greeting: Duration::from_secs(60),
            command: Duration::from_secs(30),
            data: Duration::from_secs(60),
            dot: Duration::from_secs(600),
            answer: Duration::from_secs(30),
            own: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// All stages alike: for tests.
    pub fn each(limit: Duration) -> Self {
        let [connect, greeting, command, data, dot, answer, own] = [limit; 7];
        Self { connect, greeting, command, data, dot, answer, own }
    }

    /// A whole delivery.
    pub fn whole(&self, settings: &Settings) -> Duration {
        let sending = match settings {
            Settings::Email { to } => self.mail(u32::try_from(to.len()).unwrap_or(u32::MAX)),
            Settings::Webhook { .. }
            | Settings::Slack { .. }
            | Settings::Discord { .. }
            | Settings::Teams { .. }
            | Settings::Telegram { .. }
            | Settings::Ntfy { .. }
            | Settings::Gotify { .. } => self.request(),
        };
        sending.saturating_add(self.own)
    }

    /// A connection to a mail server, until it takes mails.
    pub fn opening(&self) -> Duration {
        self.connect + self.greeting + self.command * OPENING_COMMANDS
    }

    /// A mail on an open connection.
    pub fn transaction(&self, recipients: u32) -> Duration {
        self.command.saturating_mul(recipients.saturating_add(1)).saturating_add(self.data + self.dot)
    }

    /// A mail to all, then to each alone for as long again, on as many connections as it may take.
    fn mail(&self, recipients: u32) -> Duration {
        let session = self.opening() + self.transaction(recipients).saturating_mul(2) + self.transaction(1) + FAREWELL;
        session.saturating_mul(MAX_MAIL_SESSIONS)
    }

    /// One request, without what it redirects to.
    pub fn hop(&self) -> Duration {
        self.connect + self.answer
    }

    fn request(&self) -> Duration {
        (self.hop() + DRAIN) * (MAX_REDIRECTS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(recipients: usize) -> Settings {
        Settings::Email { to: (0..recipients).map(|n| format!("{n}@example.com")).collect() }
    }

    #[test]
    fn the_whole_is_longer_than_its_stages() {
        let limits = Limits::default();
        let webhook = Settings::Slack { url: String::new() };

        assert!(limits.whole(&webhook) > limits.hop() * (MAX_REDIRECTS + 1));
        assert!(limits.whole(&mail(1)) > limits.opening() + limits.transaction(1));
        assert!(limits.whole(&mail(20)) >= limits.whole(&mail(1)) + limits.command * 19);
    }
}
