//! Sends mails through the operator's SMTP server. The operator chose it, so the guard does not restrict its address.

mod session;
mod tally;

use std::net::IpAddr;
use std::time::SystemTime;

use lettre::Message as Email;
use lettre::address::Address;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use self::session::{Broken, Content, Ended, Session};
use self::tally::Tally;
use super::format::Mail;
use super::hand_over::HandOver;
use super::limits::{Limits, MAX_MAIL_SESSIONS};
use super::message::Message;
use super::sender::{Receipt, Refusal, Refused, SenderError};
use crate::store::Progress;

/// Ports of RFC 8314 and RFC 6409.
const SMTPS_PORT: u16 = 465;
const SUBMISSION_PORT: u16 = 587;

/// The SMTP server, and the sender's address.
#[derive(Clone)]
pub struct SmtpConfig {
    /// `smtps://user:password@host:465` for TLS from the first byte, `smtp://host:587` for STARTTLS, which is required;
    /// `smtp://host:25?tls=none` for neither.
    pub url: SecretString,
    /// The sender's address, with or without a name: `Signalbox <signalbox@example.com>`.
    pub from: String,
}

/// The SMTP server, with TLS and credentials.
struct Server {
    host: String,
    port: u16,
    tls: Tls,
    credentials: Option<Credentials>,
}

/// Sends mails through one server.
pub struct Mailer {
    server: Server,
    from: Mailbox,
    limits: Limits,
}

/// A mail that is being sent.
struct Delivery<'a> {
    mail: &'a Mail,
    message: &'a Message,
    /// Every recipient, whether they have it or not.
    all: Vec<Address>,
    tally: Tally,
    hand_over: &'a dyn HandOver,
}

impl Mailer {
    pub fn new(config: &SmtpConfig, extra_roots: Option<&[u8]>, limits: Limits) -> Result<Self, SenderError> {
        let from: Mailbox = config.from.parse().map_err(|_| SenderError::SmtpFrom(config.from.clone()))?;
        let url = Url::parse(config.url.expose_secret()).map_err(|_| SenderError::SmtpUrl("is not a valid URL"))?;
        let host = match url.host_str() {
            Some(host) if !host.is_empty() => host.trim_matches(['[', ']']).to_owned(),
            _ => return Err(SenderError::SmtpUrl("has no host")),
        };
        let (port, tls) = security(&url, &host, extra_roots)?;
        let credentials = credentials(&url)?;
        let is_open = matches!(tls, Tls::None) && !is_loopback(&host);
        if is_open && credentials.is_some() {
            // Anybody on the network path could read it.
            tracing::warn!(
                "the password is not sent to the mail server: its URL has tls=none and its host is not this one"
            );
        }
        let credentials = credentials.filter(|_| !is_open);
        Ok(Self { server: Server { host, port, tls, credentials }, from, limits })
    }

    /// Sends one mail to all recipients who do not have it yet. A refusal of one recipient does not affect the others.
    pub async fn send(
        &self,
        mail: &Mail,
        message: &Message,
        before: &Progress,
        hand_over: &dyn HandOver,
    ) -> Result<Receipt, Refused> {
        let all = mail.to.iter().map(|to| address(to)).collect::<Result<Vec<Address>, Refused>>();
        let all = all.map_err(|refused| refused.with(before.clone()))?;
        if all.is_empty() {
            return Err(Refused::new(Refusal::Misconfigured, "the channel has no recipients").with(before.clone()));
        }
        let mut left: Vec<Address> =
            all.iter().filter(|to| before.is_left(AsRef::<str>::as_ref(*to))).cloned().collect();
        let mut delivery = Delivery { mail, message, all, tally: Tally::new(before), hand_over };
        for _ in 0..MAX_MAIL_SESSIONS {
            if left.is_empty() {
                break;
            }
            let mut session = match Session::open(&self.server, &self.limits).await {
                Ok(session) => session,
                Err(refused) => {
                    delivery.tally.refused(&left, &refused);
                    break;
                }
            };
            let sent = self.send_on(&mut session, &mut delivery, &left).await;
            session.close().await;
            match sent {
                // The next connection tries the others without this recipient.
                Err(Broken { on: Some(culprit) }) => left.retain(|to| *to != culprit && delivery.tally.is_left(to)),
                Ok(()) | Err(Broken { on: None }) => break,
            }
        }
        delivery.tally.settle(&self.server.host, &mail.to)
    }

    async fn send_on(
        &self,
        session: &mut Session<'_>,
        delivery: &mut Delivery<'_>,
        left: &[Address],
    ) -> Result<(), Broken> {
        let Delivery { mail, message, all, tally, hand_over } = delivery;
        let named: Vec<Address> = all.iter().filter(|to| session.takes(to)).cloned().collect();
        let (left, odd): (Vec<Address>, Vec<Address>) = left.iter().cloned().partition(|to| named.contains(to));
        let only_ascii = format!("{} does not accept addresses with letters beyond ASCII", self.server.host);
        tally.refused(&odd, &Refused::new(Refusal::Rejected, only_ascii));
        if left.is_empty() {
            return Ok(());
        }
        let email = match self.compose(mail, &named, message) {
            Ok(email) => email.formatted(),
            Err(refused) => {
                tally.refused(&left, &refused);
                return Ok(());
            }
        };
        let content = Content { from: &self.from.email, email: &email };
        let Ended::ContentRejected(named) = session.hand_over(&content, &left, tally, *hand_over).await? else {
            return Ok(());
        };
        // One recipient may be the reason why the server rejects it for all.
        let count = u32::try_from(named.len()).unwrap_or(u32::MAX);
        let until = Instant::now() + self.limits.transaction(count);
        for alone in named.chunks(1) {
            if Instant::now() >= until {
                break;
            }
            session.hand_over(&content, alone, tally, *hand_over).await?;
        }
        Ok(())
    }

    /// Builds the mail. It is the same at each attempt, with an id by which mail programs recognise a duplicate.
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
            .map_err(|error| Refused::new(Refusal::Misconfigured, format!("the mail cannot be built: {error}")))?;
        // Asks for no automatic replies, such as absence notes (RFC 3834).
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        email.headers_mut().insert_raw(automatic);
        Ok(email)
    }
}

fn address(text: &str) -> Result<Address, Refused> {
    text.parse().map_err(|_| {
        Refused::new(Refusal::Misconfigured, "one of the channel's recipients is not a valid e-mail address")
    })
}

/// Returns the port and the kind of encryption that the URL asks for.
fn security(url: &Url, host: &str, extra_roots: Option<&[u8]>) -> Result<(u16, Tls), SenderError> {
    let wanted: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let is_plain = match wanted.as_slice() {
        [] => false,
        [(name, value)] if name == "tls" && value == "none" => true,
        [(name, value)] if name == "tls" && value == "required" => false,
        _ => return Err(SenderError::SmtpUrl("accepts only the options ?tls=required and ?tls=none")),
    };
    match url.scheme() {
        "smtps" if is_plain => Err(SenderError::SmtpUrl("cannot be smtps:// without TLS")),
        "smtps" => Ok((url.port().unwrap_or(SMTPS_PORT), Tls::Wrapper(tls(host, extra_roots)?))),
        "smtp" if is_plain => Ok((url.port().unwrap_or(SUBMISSION_PORT), Tls::None)),
        "smtp" => Ok((url.port().unwrap_or(SUBMISSION_PORT), Tls::Required(tls(host, extra_roots)?))),
        _ => Err(SenderError::SmtpUrl("must begin with smtp:// or smtps://")),
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

/// Returns the user name and password of the URL.
fn credentials(url: &Url) -> Result<Option<Credentials>, SenderError> {
    let Some(password) = url.password() else { return Ok(None) };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
    let (user, password) = (decoded(url.username()), decoded(password));
    match (user, password) {
        (Ok(user), Ok(password)) => Ok(Some(Credentials::new(user, password))),
        _ => Err(SenderError::SmtpUrl("has a user name or a password that is not UTF-8")),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
