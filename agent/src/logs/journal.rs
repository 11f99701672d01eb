//! systemd's journal, read through `journalctl`, which hides its format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;

use super::Item;
use super::error::LogError;
use super::lines::{Splitter, bounded};

/// The longest entry in JSON; longer ones count as lost.
const MAX_ENTRY_BYTES: usize = 1024 * 1024;
const CHUNK: usize = 16 * 1024;

/// The journal of this machine.
pub struct Journal {
    pub program: PathBuf,
}

impl Journal {
    /// Sends the last entries, then each new one. `journalctl` waits while nobody receives them.
    pub async fn follow(self, tail: u32, items: mpsc::Sender<Item>) -> Result<(), LogError> {
        let mut entries = Entries::start(&self.program, ["--follow".to_owned(), format!("--lines={tail}")])?;
        while let Some(item) = entries.next().await? {
            if items.send(item).await.is_err() {
                return Ok(());
            }
        }
        Err(LogError::Ended)
    }

    /// The entries of a time range, newest first.
    pub fn backwards(&self, since: Option<Timestamp>, until: Option<Timestamp>) -> Result<Entries, LogError> {
        // Whole seconds around the range; the caller removes the rest.
        let since = since.map(|time| format!("--since=@{}", time.as_seconds()));
        let until = until.map(|time| format!("--until=@{}", time.as_seconds().saturating_add(1)));
        let range = since.into_iter().chain(until);
        Entries::start(&self.program, std::iter::once("--reverse".to_owned()).chain(range))
    }
}

/// The output of a running `journalctl`. Dropping it ends the program.
pub struct Entries {
    stdout: ChildStdout,
    splitter: Splitter,
    buffer: Vec<u8>,
    /// The part of the buffer that was not split yet.
    unread: std::ops::Range<usize>,
    _child: Child,
}

impl Entries {
    fn start(program: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Self, LogError> {
        let mut child = Command::new(program)
            // The agent's key may be in its environment.
            .env_clear()
            .args([
                "--output=json",
                "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,_COMM",
                "--all",
                "--no-pager",
                "--quiet",
            ])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or(LogError::Ended)?;
        let splitter = Splitter::new(MAX_ENTRY_BYTES);
        Ok(Self { stdout, splitter, buffer: vec![0; CHUNK], unread: 0..0, _child: child })
    }

    /// The next entry; none when the program has ended.
    pub async fn next(&mut self) -> Result<Option<Item>, LogError> {
        loop {
            let whole = self.buffer.get(self.unread.clone()).unwrap_or_default();
            let mut rest = whole;
            let line = self.splitter.next(&mut rest);
            self.unread.start = self.unread.end - rest.len();
            if let Some(line) = line {
                return Ok(Some(parse(&line)));
            }
            let count = self.stdout.read(&mut self.buffer).await?;
            if count == 0 {
                return Ok(None);
            }
            self.unread = 0..count;
        }
    }
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    micros: Option<String>,
    #[serde(rename = "MESSAGE", default)]
    message: Value,
    #[serde(rename = "SYSLOG_IDENTIFIER", default)]
    identifier: Value,
    #[serde(rename = "_COMM", default)]
    program: Value,
}

/// The most characters of a program's name, which the program chooses itself.
const MAX_NAME: usize = 64;

/// An entry as a line; an unreadable one counts as lost.
fn parse(json: &str) -> Item {
    let Ok(entry) = serde_json::from_str::<Entry>(json) else { return Item::Dropped(1) };
    let micros = entry.micros.and_then(|micros| micros.parse::<i64>().ok());
    let program = text(&entry.identifier).or_else(|| text(&entry.program));
    let stream = program.map(|name| name.chars().take(MAX_NAME).collect());
    let message = bounded(text(&entry.message).unwrap_or_default());
    Item::Line(LogLine { timestamp: micros.map(|micros| Timestamp::from_millis(micros / 1000)), stream, message })
}

/// The text of a field: journalctl writes text that is not UTF-8 as a list of bytes, and a repeated field as a list.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) if values.iter().all(Value::is_u64) => {
            let bytes = values.iter().filter_map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()));
            Some(String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned())
        }
        Value::Array(values) => values.iter().find_map(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: &str) -> (Option<String>, Option<String>, String) {
        match parse(json) {
            Item::Line(line) => (line.timestamp.map(|time| time.to_string()), line.stream, line.message),
            Item::Dropped(_) => panic!("not read: {json}"),
        }
    }

    #[test]
    fn an_entry_is_a_line_with_its_time_and_program() {
        let json = r#"{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1795166130120999","SYSLOG_IDENTIFIER":"sshd",
            "_COMM":"sshd-session","MESSAGE":"one\ntwo"}"#;

        let expected = (Some("2026-11-20T09:15:30.120Z".to_owned()), Some("sshd".to_owned()), "one\ntwo".to_owned());
        assert_eq!(line(json), expected);
    }

    #[test]
    fn every_shape_of_a_field_is_read() {
        assert_eq!(line(r#"{"MESSAGE":[104,105,255]}"#), (None, None, "hi\u{fffd}".to_owned()));
        assert_eq!(line(r#"{"MESSAGE":["first","second"],"_COMM":"sh"}"#), (None, Some("sh".into()), "first".into()));
        assert_eq!(line(r#"{"MESSAGE":null}"#), (None, None, String::new()));
        assert_eq!(line("{}"), (None, None, String::new()));
    }

    #[test]
    fn unreadable_entries_count_as_lost() {
        assert_eq!(parse("{\"MESSAGE\":\"cut… [5 bytes cut]"), Item::Dropped(1));
        assert_eq!(parse(""), Item::Dropped(1));
    }
}
