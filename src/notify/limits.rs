//! How long each stage of a delivery may take. The limit of a whole delivery is computed from these, so that it never cuts
//! a stage short.

use std::time::Duration;

use super::channel::Settings;

/// Redirects that are followed.
pub const MAX_REDIRECTS: u32 = 3;

/// Connections to a mail server in one attempt. If one breaks at a recipient, the next leaves that recipient out.
pub const MAX_MAIL_SESSIONS: u32 = 3;

/// The commands before a mail: STARTTLS and the EHLO after it, and AUTH with its challenges.
const OPENING_COMMANDS: u32 = 5;

/// How long to wait for a mail server's answer to QUIT, on which nothing depends.
pub const FAREWELL: Duration = Duration::from_secs(1);

/// How long to read the body of a response. It is not used, but then the connection can be used again.
pub const DRAIN: Duration = Duration::from_millis(500);

/// How long each stage of a delivery may take. A message that was not handed over yet can be sent again at no cost, so
/// the stages until then are shorter than RFC 5321, 4.5.3.2 recommends; the last one waits as long as it recommends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The name, the connection and TLS.
    pub connect: Duration,
    /// From there to a mail server's answer to EHLO. Some servers greet late to keep spammers away.
    pub greeting: Duration,
    /// Each further command of a mail: MAIL, and RCPT for each recipient.
    pub command: Duration,
    /// The answer to DATA.
    pub data: Duration,
    /// Writing a mail's content, and the answer to its final dot: servers scan for viruses before it.
    pub dot: Duration,
    /// From an HTTP request to the headers of its response.
    pub answer: Duration,
    /// The service's own work: composing the message, and writing to the outbox.
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
    /// The same limit for every stage, for tests.
    pub fn each(limit: Duration) -> Self {
        let [connect, greeting, command, data, dot, answer, own] = [limit; 7];
        Self { connect, greeting, command, data, dot, answer, own }
    }

    /// Returns the limit of a whole delivery.
    pub fn whole(&self, settings: &Settings) -> Duration {
        let sending = match settings {
            Settings::Email { to } => self.mail(u32::try_from(to.len()).unwrap_or(u32::MAX)),
            Settings::Webhook { .. }
            | Settings::Slack { .. }
            | Settings::Discord { .. }
            | Settings::Teams { .. }
            | Settings::Telegram { .. }
            | Settings::Ntfy { .. }
            | Settings::Gotify { .. }
            | Settings::Push { .. } => self.request(),
        };
        sending.saturating_add(self.own)
    }

    /// Returns the limit of a connection to a mail server until it accepts mails.
    pub fn opening(&self) -> Duration {
        self.connect + self.greeting + self.command * OPENING_COMMANDS
    }

    /// Returns the limit of one mail on an open connection.
    pub fn transaction(&self, recipients: u32) -> Duration {
        self.command.saturating_mul(recipients.saturating_add(1)).saturating_add(self.data + self.dot)
    }

    /// Returns the limit of a mail to all recipients, then to each alone for as long again, on every connection of an attempt.
    fn mail(&self, recipients: u32) -> Duration {
        let session = self.opening() + self.transaction(recipients).saturating_mul(2) + self.transaction(1) + FAREWELL;
        session.saturating_mul(MAX_MAIL_SESSIONS)
    }

    /// Returns the limit of one request, without its redirects.
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
