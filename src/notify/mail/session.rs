//! A connection to a mail server, and the mails that are handed over on it (RFC 5321). Each stage has its own limit, and
//! what an answer says about one recipient is kept apart from what it says about all.

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

/// Of what a server answers, so much is kept.
const LONGEST_REASON: usize = 200;

/// An open connection.
pub(super) struct Session<'a> {
    connection: AsyncSmtpConnection,
    server: &'a Server,
    limits: &'a Limits,
}

/// What a mail is made of, besides those who get it.
pub(super) struct Content<'a> {
    pub from: &'a Address,
    pub email: &'a [u8],
}

/// The connection is of no use any more.
pub(super) struct Broken {
    /// On whom it broke, where it did on one recipient: with another one it may not.
    pub on: Option<Address>,
}

/// What came of one mail on a connection that is still good.
pub(super) enum Ended {
    /// Every recipient has its standing.
    Settled,
    /// The server does not want this content for these recipients together.
    ContentRejected(Vec<Address>),
}

/// What one command came to.
enum Answer {
    Yes,
    /// The server answered, and goes on.
    No(Refused),
    /// It did not answer, or closes.
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
            greeted.map_err(|_| refused("did not greet in time"))?.map_err(|error| unwelcome(server, &error))?;
        if let Tls::Required(parameters) = &server.tls {
            if !connection.server_info().supports_feature(Extension::StartTls) {
                return Err(refused(
                    "offers no STARTTLS: --smtp-url needs smtps:// for TLS, or ?tls=none for no encryption",
                ));
            }
            let secured = tokio::time::timeout(limits.command * 2, connection.starttls(parameters.clone(), &hello));
            let secured = secured.await.map_err(|_| refused("did not begin TLS in time"))?;
            secured.map_err(|error| unwelcome(server, &error))?;
        }
        if let Some(credentials) = &server.credentials {
            let mechanisms = smtp::authentication::DEFAULT_MECHANISMS;
            let known = tokio::time::timeout(limits.command * 3, connection.auth(mechanisms, credentials));
            let known = known.await.map_err(|_| refused("did not check the password in time"))?;
            known.map_err(|error| unwelcome(server, &error))?;
        }
        Ok(Self { connection, server, limits })
    }

    /// Whether an address may be named here.
    pub fn takes(&self, address: &Address) -> bool {
        is_ascii(address) || self.connection.server_info().supports_feature(Extension::SmtpUtfEight)
    }

    /// Hands one mail over to as many of `to` as the server takes. How each stands then is in the tally.
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
            // Without its final dot it is no mail: the server forgets it.
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
                let how = if sent.is_err() { "did not answer in time" } else { "broke the connection off" };
                tally.unanswered(&accepted, &format!("{} was sent the mail and {how}", self.server.host));
                return Err(all);
            }
        }
        Ok(Ended::Settled)
    }

    /// Names the recipients of a mail. Gives those that the server takes.
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
            // 421 is the last word of a server that closes.
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

    /// Leaves, as is polite.
    pub async fn close(mut self) {
        _ = tokio::time::timeout(FAREWELL, self.connection.abort()).await;
    }
}

/// The server said no to a mail after it had taken its recipients.
fn content_refused(named: Vec<Address>, refused: &Refused, tally: &mut Tally) -> Ended {
    tally.refused(&named, refused);
    let is_of_several = refused.kind == Refusal::Rejected && named.len() > 1;
    if is_of_several { Ended::ContentRejected(named) } else { Ended::Settled }
}

fn is_ascii(address: &Address) -> bool {
    AsRef::<str>::as_ref(address).is_ascii()
}

/// What a server said instead of beginning: the same to the next sender.
fn unwelcome(server: &Server, error: &smtp::Error) -> Refused {
    Refused { kind: Refusal::Unreachable, ..answered(server, error) }
}

/// What a server said of a mail.
fn answered(server: &Server, error: &smtp::Error) -> Refused {
    let host = &server.host;
    let reason: String = error.to_string().chars().filter(|letter| !letter.is_control()).take(LONGEST_REASON).collect();
    let kind = match error.status().map(u16::from) {
        // It wants other credentials, or any: for the operator to mend, who finds the message still waiting.
        Some(530 | 534 | 535 | 538) => Refusal::Unreachable,
        // Too many recipients, in the words of old servers (RFC 5321, 4.5.3.1.10).
        Some(552) => Refusal::Deferred,
        Some(500..) => Refusal::Rejected,
        Some(_) => Refusal::Deferred,
        None => Refusal::Unreachable,
    };
    Refused::new(kind, format!("{host}: {reason}"))
}
