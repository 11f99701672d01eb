//! Parses database URLs as the drivers do.

use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use sea_orm::sqlx;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::sqlite::SqliteConnectOptions;

use super::{StoreError, reach};

/// What a URL names.
pub(super) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<PgConnectOptions>),
}

/// An IPv6 address as the system's resolver accepts it: the driver passes the brackets of a URL on.
pub(super) fn unbracketed(options: PgConnectOptions) -> PgConnectOptions {
    let address = options.get_host().strip_prefix('[').and_then(|host| host.strip_suffix(']')).map(str::to_owned);
    match address {
        Some(address) => options.host(&address),
        None => options,
    }
}

/// Whether a URL names a database that could be used.
pub fn check(url: &str) -> Result<(), StoreError> {
    target(url).map(|_| ())
}

/// The file of an embedded database; none for another engine.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    match target(url) {
        Ok(Target::Sqlite(file)) => Some(file),
        Ok(Target::Postgres(_)) | Err(_) => None,
    }
}

/// The database that a URL names, for people: its file, or its address and name. Never its password.
pub fn place_of(url: &str) -> Result<String, StoreError> {
    Ok(match target(url)? {
        Target::Sqlite(file) => file.display().to_string(),
        Target::Postgres(options) => {
            let options = unbracketed(*options);
            let name = options.get_database().unwrap_or_else(|| options.get_username());
            format!("{}/{name}", reach::address(&options))
        }
    })
}

/// Parses the URL as the drivers will, because SeaORM panics on a bad one.
pub(super) fn target(url: &str) -> Result<Target, StoreError> {
    if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url).map_err(|error| misread(&error))?;
        let file = options.get_filename();
        // The driver has a file name for an unnamed one, too.
        let is_named = !file.as_os_str().is_empty() && !url.contains(":memory:");
        if !is_named || parameters(url).any(|(key, value)| key == "mode" && value == "memory") {
            return Err(StoreError::InMemory);
        }
        return Ok(Target::Sqlite(file.to_owned()));
    }
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(StoreError::BadScheme);
    }
    refuse_unknown(url)?;
    let options = PgConnectOptions::from_str(url).map_err(|error| misread(&error))?;
    Ok(Target::Postgres(Box::new(options)))
}

/// The parameters of a URL that the driver of PostgreSQL reads. It ignores all others.
const PARAMETERS: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
];

/// Refuses parameters that the driver would ignore: with a misspelt `sslmode` it would trust any server.
fn refuse_unknown(url: &str) -> Result<(), StoreError> {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let (query, fragment) = query.split_once('#').unwrap_or((query, ""));
    let keys =
        query.split('&').filter(|pair| !pair.is_empty()).map(|pair| decoded(pair.split('=').next().unwrap_or(pair)));
    let keys: Vec<String> = keys.collect();
    let is_known = |key: &str| {
        let is_option = key.strip_prefix("options").is_some_and(|name| name.is_empty() || is_bracketed(name));
        is_option || PARAMETERS.contains(&key)
    };
    let Some(unknown) = keys.iter().find(|key| !is_known(key)) else { return Ok(()) };
    // A question mark in a password turns its rest into parameters, which no message may show.
    let is_word = |key: &String| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte));
    Err(StoreError::BadUrl(if keys.iter().all(is_word) && !fragment.contains('@') {
        format!("there is no parameter {unknown}")
    } else {
        "a name behind the question mark is no parameter; in a password ? is written %3F".to_owned()
    }))
}

fn is_bracketed(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']')
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

fn misread(error: &sqlx::Error) -> StoreError {
    StoreError::BadUrl(match error {
        sqlx::Error::Configuration(reason) => reason.to_string(),
        error => error.to_string(),
    })
}

/// The parameters of a URL.
pub(super) fn parameters(url: &str) -> impl Iterator<Item = (&str, String)> {
    let pairs = url.split_once('?').map(|(_, query)| query).unwrap_or_default().split('&');
    pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((key, decoded(value)))
    })
}

/// The files that a URL names for TLS, each with the name of its parameter.
pub(super) fn tls_files(url: &str) -> Vec<(String, PathBuf)> {
    let names = ["sslrootcert", "ssl-root-cert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key"];
    let files = parameters(url).filter(|(key, value)| names.contains(key) && !value.starts_with("-----BEGIN"));
    files.map(|(key, file)| (key.to_owned(), file.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_url_do_not_repeat_it() {
        let told = |url: &str| check(url).err().map(|error| error.to_string());

        assert_eq!(told("postgres://ada:secret@db.example:5433/box?sslmode=verify-full"), None);
        assert_eq!(told("sqlite:///srv/box.db?mode=rwc"), None);
        assert_eq!(told("postgres://db/x?ssl%6Dode=require&options[search_path]=a&options=-c%20a=b&&user=ada#x"), None);
        for (url, words) in [
            ("", "must begin with"),
            ("mysql://ada:secret@db", "must begin with"),
            ("postgres://ada:secret@db:abc/x", "invalid port number"),
            ("postgres://ada:secret@db/x?sslmode=foo", "foo"),
            ("postgres://ada:secret@db/x?port=70000", "number too large"),
            ("postgres://ada:secret@db/x?sslmod=verify-full", "no parameter sslmod"),
            ("postgres://ada:secret@db/x?sslmode=require&connect_timeout", "no parameter connect_timeout"),
            ("postgres://ada:secret@db/x?options[a=b", "no parameter options[a"),
            ("postgres://host:1?secret&more@db/x", "is no parameter"),
            ("postgres://host:1?secret#more@db/x", "is no parameter"),
            ("sqlite:///srv/box.db?mode=secure", "secure"),
            ("sqlite:", "in memory"),
            ("sqlite://", "in memory"),
            ("sqlite://?mode=rwc", "in memory"),
            ("sqlite::memory:", "in memory"),
            ("sqlite://:memory:", "in memory"),
            ("sqlite:///srv/box.db?cache=shared&mode=memory", "in memory"),
        ] {
            let told = told(url).unwrap_or_default();
            assert!(told.contains(words), "{url}: {told}");
            assert!(!told.contains("ada") && !told.contains("secret"), "{url}: {told}");
        }
    }

    #[test]
    fn an_address_of_ipv6_loses_its_brackets_and_gets_them_back_for_people() {
        let host = |url: &str| unbracketed(PgConnectOptions::from_str(url).unwrap()).get_host().to_owned();

        assert_eq!(host("postgres://ada@[::1]:5432/box"), "::1");
        assert_eq!(host("postgres://ada@[2001:db8::7]/box"), "2001:db8::7");
        assert_eq!(host("postgres://ada@db.example/box"), "db.example");
        assert_eq!(host("postgres:///box?host=2001:db8::7"), "2001:db8::7");
        assert_eq!(place_of("postgres://ada:secret@[::1]/box").unwrap(), "[::1]:5432/box");
        assert_eq!(place_of("postgres://ada:secret@db.example:5433").unwrap(), "db.example:5433/ada");
        assert_eq!(place_of("sqlite:///srv/my%20data/box.db?mode=rwc").unwrap(), "/srv/my data/box.db");
    }
}
