//! Sends mails by the SMTP server that the operator has chosen. It may be anywhere: no guard stands before it.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use lettre::address::{Address, Envelope};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message as Email, Tokio1Executor};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::format::Mail;
use super::message::Message;
use super::sender::{Receipt, Refusal, Refused, SenderError};

/// Ports of RFC 8314 and RFC 6409.
const SMTPS_PORT: u16 = 465;
const SUBMISSION_PORT: u16 = 587;

/// A mail server takes its time, on purpose (a late greeting keeps robots away) or to look for viruses.
const PATIENCE: u32 = 3;

/// Of what a server answers, so much is kept.
const LONGEST_REASON: usize = 200;

/// How mails are sent.
#[derive(Clone)]
pub struct SmtpConfig {
    /// `smtps://user:password@host:465` for TLS from the first byte, `smtp://host:587` for STARTTLS, which is required;
    /// `smtp://host:25?tls=none` for neither.
    pub url: SecretString,
    /// Who sends, with or without a name: `Signalbox <signalbox@example.com>`.
    pub from: String,
}

/// A mail server.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    host: String,
    from: Mailbox,
    timeout: Duration,
}

impl Mailer {
    pub fn new(config: &SmtpConfig, extra_roots: Option<&[u8]>, timeout: Duration) -> Result<Self, SenderError> {
        let from: Mailbox = config.from.parse().map_err(|_| SenderError::SmtpFrom(config.from.clone()))?;
        let mut url = Url::parse(config.url.expose_secret()).map_err(|_| SenderError::SmtpUrl("is no URL"))?;
        let host = match url.host_str() {
            Some(host) if !host.is_empty() => host.trim_matches(['[', ']']).to_owned(),
            _ => return Err(SenderError::SmtpUrl("names no host")),
        };
        let (port, tls) = security(&url, &host, extra_roots)?;
        if matches!(tls, Tls::None) && !is_loopback(&host) {
            // Anybody on the way would read them.
            strip_credentials(&mut url)?;
        }
        // The rest is said by other means: what lettre reads here is host and credentials.
        url.set_query(None);
        url.set_path("");
        url.set_scheme("smtp").map_err(|()| SenderError::SmtpUrl("cannot be read"))?;
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())
            .map_err(|_| SenderError::SmtpUrl("cannot be read"))?;
        let transport = builder.port(port).tls(tls).timeout(Some(timeout)).build();
        Ok(Self { transport, host, from, timeout: timeout * PATIENCE })
    }

    /// Sends one mail to all. Where the server refuses one of several, each gets a mail of its own: a mailbox that is
    /// gone keeps nothing from the others.
    pub async fn send(&self, mail: &Mail, message: &Message) -> Result<Receipt, Refused> {
        let to = mail.to.iter().map(|to| address(to)).collect::<Result<Vec<Address>, Refused>>()?;
        let email = self.compose(mail, &to, message)?.formatted();
        let all = self.hand_over(&to, &email).await;
        match all {
            Ok(()) => Ok(Receipt { detail: format!("{} took it", self.host) }),
            Err(refused) if refused.kind == Refusal::Rejected && to.len() > 1 => {
                self.one_by_one(&to, &email, refused).await
            }
            Err(refused) => Err(refused),
        }
    }

    async fn one_by_one(&self, to: &[Address], email: &[u8], refused: Refused) -> Result<Receipt, Refused> {
        let mut taken = 0;
        let mut last = refused;
        for address in to {
            match self.hand_over(std::slice::from_ref(address), email).await {
                Ok(()) => taken += 1,
                Err(refused) => last = refused,
            }
        }
        match taken {
            0 => Err(last),
            taken => {
                let (host, all) = (&self.host, to.len());
                Ok(Receipt { detail: format!("{host} took it for {taken} of {all} addresses; {}", last.detail) })
            }
        }
    }

    async fn hand_over(&self, to: &[Address], email: &[u8]) -> Result<(), Refused> {
        let envelope = Envelope::new(Some(self.from.email.clone()), to.to_vec())
            .map_err(|_| Refused::new(Refusal::Misconfigured, "the channel has no address"))?;
        match tokio::time::timeout(self.timeout, self.transport.send_raw(&envelope, email)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(Refused::new(Refusal::Unreachable, format!("{} did not answer in time", self.host))),
        }
    }

    /// The same at each attempt, with an id by which mail programs know a repetition.
    fn compose(&self, mail: &Mail, to: &[Address], message: &Message) -> Result<Email, Refused> {
        let mut builder = Email::builder()
            .from(self.from.clone())
            .subject(mail.subject.clone())
            .date(SystemTime::from(message.at.to_datetime()))
            .message_id(Some(format!("<{}@{}>", message.id, self.from.email.domain())));
        for address in to {
            builder = builder.to(Mailbox::new(None, address.clone()));
        }
        let mut email = builder
            .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
            .map_err(|error| Refused::new(Refusal::Misconfigured, format!("the mail cannot be written: {error}")))?;
        // No absence note comes back (RFC 3834).
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        email.headers_mut().insert_raw(automatic);
        Ok(email)
    }

    fn failed(&self, error: &smtp::Error) -> Refused {
        let host = &self.host;
        let reason: String =
            error.to_string().chars().filter(|letter| !letter.is_control()).take(LONGEST_REASON).collect();
        let code = error.status().map(u16::from);
        let kind = match code {
            // It wants other credentials, or any: for the operator to mend, who finds the message still waiting.
            Some(530 | 534 | 535 | 538) => Refusal::Unreachable,
            Some(500..) => Refusal::Rejected,
            _ => Refusal::Unreachable,
        };
        Refused::new(kind, format!("{host}: {reason}"))
    }
}

fn address(text: &str) -> Result<Address, Refused> {
    text.parse().map_err(|_| Refused::new(Refusal::Misconfigured, "an address of the channel is none"))
}

/// The port and the kind of encryption that a URL asks for.
fn security(url: &Url, host: &str, extra_roots: Option<&[u8]>) -> Result<(u16, Tls), SenderError> {
    let wanted: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let is_plain = match wanted.as_slice() {
        [] => false,
        [(name, value)] if name == "tls" && value == "none" => true,
        [(name, value)] if name == "tls" && value == "required" => false,
        _ => return Err(SenderError::SmtpUrl("understands only ?tls=required and ?tls=none")),
    };
    match url.scheme() {
        "smtps" if is_plain => Err(SenderError::SmtpUrl("cannot be smtps:// without TLS")),
        "smtps" => Ok((url.port().unwrap_or(SMTPS_PORT), Tls::Wrapper(tls(host, extra_roots)?))),
        "smtp" if is_plain => Ok((url.port().unwrap_or(SUBMISSION_PORT), Tls::None)),
        "smtp" => Ok((url.port().unwrap_or(SUBMISSION_PORT), Tls::Required(tls(host, extra_roots)?))),
        _ => Err(SenderError::SmtpUrl("begins with neither smtp:// nor smtps://")),
    }
}

fn tls(host: &str, extra_roots: Option<&[u8]>) -> Result<TlsParameters, SenderError> {
    let setup = |error: smtp::Error| SenderError::Setup(error.to_string());
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(roots) = extra_roots {
        builder = builder.add_root_certificate(Certificate::from_pem(roots).map_err(setup)?);
    }
    builder.build().map_err(setup)
}

fn strip_credentials(url: &mut Url) -> Result<(), SenderError> {
    if !url.username().is_empty() || url.password().is_some() {
        tracing::warn!("the mail server gets no password: its URL says tls=none and its host is not this one");
    }
    let stripped = url.set_username("").and_then(|()| url.set_password(None));
    stripped.map_err(|()| SenderError::SmtpUrl("cannot be read"))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
