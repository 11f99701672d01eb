//! A connection to a mail server, and the mails that are handed over on it (RFC 5321). Each stage has its own limit, and an
//! answer about one recipient is kept apart from an answer about all.

use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp;
use lettre::transport::smtp::client::{AsyncSmtpConnection, Tls};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};

use super::super::hand_over::HandOver;
use super::super::limits::{FAREWELL, Limits};
use super::super::sender::{Refusal, Refused};
use super::Server;
use super::tally::Tally;

/// How much of a server's answer goes into the delivery log, in characters.
const LONGEST_REASON: usize = 200;

/// An open connection.
pub(super) struct Session<'a> {
    connection: AsyncSmtpConnection,
    server: &'a Server,
    limits: &'a Limits,
}

/// A mail without its recipients.
pub(super) struct Content<'a> {
    pub from: &'a Address,
    pub email: &'a [u8],
}

/// The connection cannot be used any more.
pub(super) struct Broken {
    /// The recipient at which it broke, if it was at one: without that recipient a new connection may work.
    pub on: Option<Address>,
}

/// The outcome of one mail on a connection that still works.
pub(super) enum Ended {
    /// The tally has an outcome for every recipient.
    Settled,
    /// The server rejects this content for these recipients together.
    ContentRejected(Vec<Address>),
}

/// The outcome of one command.
enum Answer {
    Yes,
    /// The server refused the command and keeps the connection.
    No(Refused),
    /// The server did not answer, or is closing the connection.
    Gone(Refused),
}

impl<'a> Session<'a> {
    pub async fn open(server: &'a Server, limits: &'a Limits) -> Result<Self, Refused> {
        let hello = ClientId::default();
        let wrapper = if let Tls::Wrapper(parameters) = &server.tls { Some(parameters.clone()) } else { None };
        let address = (server.host.as_str(), server.port);
        let connecting = AsyncSmtpConnection::connect_tokio1(address, Some(limits.connect), &hello, wrapper, None);
        let greeted = tokio::time::timeout(limits.connect + limits.greeting, connecting).await;
        let refused = |what: &str| Refused::new(Refusal::Unreachable, format!("{} {what}", server.host));
        let mut connection =
            greeted.map_err(|_| refused("sent no greeting in time"))?.map_err(|error| unwelcome(server, &error))?;
        if let Tls::Required(parameters) = &server.tls {
            if !connection.server_info().supports_feature(Extension::StartTls) {
                return Err(refused(
                    "does not offer STARTTLS: use smtps:// in --smtp-url for TLS, or ?tls=none for no encryption",
                ));
            }
            let secured = tokio::time::timeout(limits.command * 2, connection.starttls(parameters.clone(), &hello));
            let secured = secured.await.map_err(|_| refused("did not start TLS in time"))?;
            secured.map_err(|error| unwelcome(server, &error))?;
        }
        if let Some(credentials) = &server.credentials {
            let mechanisms = smtp::authentication::DEFAULT_MECHANISMS;
            let known = tokio::time::timeout(limits.command * 3, connection.auth(mechanisms, credentials));
            let known = known.await.map_err(|_| refused("did not answer the login in time"))?;
            known.map_err(|error| unwelcome(server, &error))?;
        }
        Ok(Self { connection, server, limits })
    }

    /// Returns whether this server accepts an address of this form.
    pub fn takes(&self, address: &Address) -> bool {
        is_ascii(address) || self.connection.server_info().supports_feature(Extension::SmtpUtfEight)
    }

    /// Hands one mail over for as many of `to` as the server accepts. The tally has the outcome for each.
    pub async fn hand_over(
        &mut self,
        content: &Content<'_>,
        to: &[Address],
        tally: &mut Tally,
        hand_over: &dyn HandOver,
    ) -> Result<Ended, Broken> {
        let all = Broken { on: None };
        let parameters = self.parameters(content, to);
        match self.ask(Mail::new(Some(content.from.clone()), parameters)).await {
            Answer::Yes => {}
            Answer::No(refused) => {
                tally.refused(to, &refused);
                return Ok(Ended::Settled);
            }
            Answer::Gone(refused) => {
                tally.refused(to, &refused);
                return Err(all);
            }
        }
        let accepted = self.name(to, tally).await?;
        if accepted.is_empty() {
            return Ok(Ended::Settled);
        }
        match self.command(Data, self.limits.data).await {
            Answer::Yes => {}
            Answer::No(refused) => return Ok(content_refused(accepted, &refused, tally)),
            Answer::Gone(refused) => {
                tally.refused(&accepted, &refused);
                return Err(all);
            }
        }
        if !tally.begin(&accepted, hand_over).await {
            // The content was not sent, so the server discards the mail.
            tally.refused(&accepted, &Refused::new(Refusal::Unreachable, "the outbox could not be written"));
            return Err(all);
        }
        let sent = tokio::time::timeout(self.limits.dot, self.connection.message(content.email)).await;
        match &sent {
            Ok(Ok(_)) => tally.delivered(&accepted),
            Ok(Err(error)) if error.status().is_some() => {
                return Ok(content_refused(accepted, &answered(self.server, error), tally));
            }
            Ok(Err(_)) | Err(_) => {
                let how = if sent.is_err() { "did not answer in time" } else { "closed the connection" };
                tally.unanswered(&accepted, &format!("{} was sent the mail and {how}", self.server.host));
                return Err(all);
            }
        }
        Ok(Ended::Settled)
    }

    /// Sends RCPT for each recipient. Returns those that the server accepts.
    async fn name(&mut self, to: &[Address], tally: &mut Tally) -> Result<Vec<Address>, Broken> {
        let mut accepted = Vec::new();
        for (index, address) in to.iter().enumerate() {
            match self.ask(Rcpt::new(address.clone(), Vec::new())).await {
                Answer::Yes => accepted.push(address.clone()),
                Answer::No(refused) => tally.refused(std::slice::from_ref(address), &refused),
                Answer::Gone(refused) => {
                    tally.refused(&accepted, &refused);
                    tally.refused(to.get(index..).unwrap_or_default(), &refused);
                    return Err(Broken { on: Some(address.clone()) });
                }
            }
        }
        Ok(accepted)
    }

    fn parameters(&self, content: &Content<'_>, to: &[Address]) -> Vec<MailParameter> {
        let mut parameters = Vec::new();
        if !is_ascii(content.from) || !to.iter().all(is_ascii) {
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if !content.email.is_ascii() {
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        parameters
    }

    async fn ask(&mut self, command: impl std::fmt::Display) -> Answer {
        self.command(command, self.limits.command).await
    }

    async fn command(&mut self, command: impl std::fmt::Display, limit: Duration) -> Answer {
        match tokio::time::timeout(limit, self.connection.command(command)).await {
            Ok(Ok(_)) => Answer::Yes,
            // After 421 the server closes the connection.
            Ok(Err(error)) if error.status().is_some_and(|code| u16::from(code) != 421) => {
                Answer::No(answered(self.server, &error))
            }
            Ok(Err(error)) => Answer::Gone(answered(self.server, &error)),
            Err(_) => {
                let detail = format!("{} did not answer in time", self.server.host);
                Answer::Gone(Refused::new(Refusal::Unreachable, detail))
            }
        }
    }

    /// Ends the session with QUIT.
    pub async fn close(mut self) {
        _ = tokio::time::timeout(FAREWELL, self.connection.abort()).await;
    }
}

/// Records that the server refused a mail after it had accepted its recipients.
fn content_refused(named: Vec<Address>, refused: &Refused, tally: &mut Tally) -> Ended {
    tally.refused(&named, refused);
    let is_of_several = refused.kind == Refusal::Rejected && named.len() > 1;
    if is_of_several { Ended::ContentRejected(named) } else { Ended::Settled }
}

fn is_ascii(address: &Address) -> bool {
    AsRef::<str>::as_ref(address).is_ascii()
}

/// Returns the error of a server that did not begin a session: any other message would get the same one.
fn unwelcome(server: &Server, error: &smtp::Error) -> Refused {
    Refused { kind: Refusal::Unreachable, ..answered(server, error) }
}

/// Returns what the server's answer to a mail means.
fn answered(server: &Server, error: &smtp::Error) -> Refused {
    let host = &server.host;
    let reason: String = error.to_string().chars().filter(|letter| !letter.is_control()).take(LONGEST_REASON).collect();
    let kind = match error.status().map(u16::from) {
        // The credentials are wrong or missing. The message waits until the operator corrects them.
        Some(530 | 534 | 535 | 538) => Refusal::Unreachable,
        // Old servers mean "too many recipients" (RFC 5321, 4.5.3.1.10).
        Some(552) => Refusal::Deferred,
        Some(500..) => Refusal::Rejected,
        Some(_) => Refusal::Deferred,
        None => Refusal::Unreachable,
    };
    Refused::new(kind, format!("{host}: {reason}"))
}
