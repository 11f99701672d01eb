//! Checks whether PostgreSQL accepts a connection. If not, the error names its address and the reason, and never the password.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sea_orm::sqlx::postgres::{PgConnectOptions, PgConnection};
use sea_orm::sqlx::{self, Connection};
use signalbox_agent::tls_words;
use tokio::time::timeout;

use super::failure::state_of;

/// The service, or a command, reports within 5 s of its start that the database is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(4);

/// How to trust an authority that the system does not.
const TRUSTING: &str = "sslrootcert=FILE in the URL names one of your own";

const INVALID_PASSWORD: &str = "28P01";
const UNKNOWN_DATABASE: &str = "3D000";

/// PostgreSQL cannot be used there.
#[derive(Debug, thiserror::Error)]
#[error("cannot use PostgreSQL at {address}: {cause}")]
pub struct Unreachable {
    address: String,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Refused,
    Silent,
    UnknownName(String),
    NoSocket,
    OtherProtocol,
    WrongPassword {
        user: String,
    },
    NoDatabase {
        name: String,
    },
    /// In the words of PostgreSQL, the system or the driver.
    Other(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the connection was refused; is PostgreSQL running there?"),
            Self::Silent => write!(f, "it timed out, no answer within {} s", ANSWERS_WITHIN.as_secs()),
            Self::UnknownName(host) => write!(f, "the name {host} cannot be resolved"),
            Self::NoSocket => f.write_str("there is no such socket; is PostgreSQL running there?"),
            Self::OtherProtocol => f.write_str("what answers there is not PostgreSQL"),
            Self::WrongPassword { user } => write!(f, "the password of user {user} is wrong, or missing"),
            Self::NoDatabase { name } => write!(f, "database {name} does not exist"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// Connects once and disconnects. `files` are those that the URL names, each with the name of its parameter.
pub(super) async fn reach(options: &PgConnectOptions, files: &[(String, PathBuf)]) -> Result<(), Unreachable> {
    let cause = match timeout(ANSWERS_WITHIN, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => {
            // The result does not matter: the database was there.
            _ = timeout(ANSWERS_WITHIN, connection.close()).await;
            return Ok(());
        }
        Ok(Err(error)) => cause(&error, options, files),
        Err(_) => Cause::Silent,
    };
    Err(Unreachable { address: address(options), cause })
}

/// The address, for people.
pub(super) fn address(options: &PgConnectOptions) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    match options.get_socket() {
        Some(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
        None if host.starts_with('/') => format!("{host}/.s.PGSQL.{port}"),
        None if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    }
}

fn cause(error: &sqlx::Error, options: &PgConnectOptions, files: &[(String, PathBuf)]) -> Cause {
    match error {
        sqlx::Error::Io(error) => of_system(error, options, files),
        sqlx::Error::Database(told) => match state_of(error).as_deref() {
            Some(INVALID_PASSWORD) => Cause::WrongPassword { user: options.get_username().to_owned() },
            Some(UNKNOWN_DATABASE) => {
                // The default is the user's name.
                let name = options.get_database().unwrap_or_else(|| options.get_username());
                Cause::NoDatabase { name: name.to_owned() }
            }
            _ => Cause::Other(told.message().to_owned()),
        },
        sqlx::Error::Protocol(_) => Cause::OtherProtocol,
        sqlx::Error::Tls(error) => Cause::Other(format!("TLS: {error}")),
        error => Cause::Other(error.to_string()),
    }
}

fn of_system(error: &io::Error, options: &PgConnectOptions, files: &[(String, PathBuf)]) -> Cause {
    // Examined before the kinds, because TLS wraps its errors in a kind that other errors have, too.
    if let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return Cause::Other(format!("TLS: {}", tls_words::of(fault, TRUSTING)));
    }
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Cause::Refused,
        io::ErrorKind::TimedOut => Cause::Silent,
        io::ErrorKind::NotFound if is_socket => Cause::NoSocket,
        // For a network address only the TLS files are read; variables such as PGSSLROOTCERT name them, too.
        io::ErrorKind::NotFound => {
            Cause::Other(unreadable(files).unwrap_or_else(|| "a file for TLS is missing".into()))
        }
        io::ErrorKind::PermissionDenied => Cause::Other(unreadable(files).unwrap_or_else(|| error.to_string())),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::ConnectionReset => {
            Cause::OtherProtocol
        }
        // The system has no error number for it.
        _ if error.to_string().contains("lookup address") => Cause::UnknownName(options.get_host().to_owned()),
        _ => Cause::Other(error.to_string()),
    }
}

/// Which of the files cannot be read, and why.
fn unreadable(files: &[(String, PathBuf)]) -> Option<String> {
    files.iter().find_map(|(name, path)| {
        let error = File::open(path).err()?;
        Some(format!("{name} {}: {}", path.display(), error.to_string().to_lowercase()))
    })
}
