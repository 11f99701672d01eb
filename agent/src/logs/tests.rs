//! Sources that are followed, without a service.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

struct Followed {
    items: mpsc::Receiver<Item>,
    running: JoinHandle<Result<(), RequestError>>,
}

impl Followed {
    async fn start(logs: &Logs, source: &str, path: Option<&Path>, tail: u32) -> Self {
        let (sender, items) = mpsc::channel(WAITING);
        let source = logs.find(source, path.and_then(Path::to_str), None).await.unwrap();
        Self { items, running: tokio::spawn(source.follow(tail, logs.threads.clone(), sender)) }
    }

    async fn next(&mut self) -> Item {
        tokio::time::timeout(PATIENCE, self.items.recv()).await.expect("an item comes").expect("the source continues")
    }

    async fn message(&mut self) -> String {
        match self.next().await {
            Item::Line(line) => line.message,
            Item::Dropped(count) => panic!("{count} lines were dropped"),
        }
    }

    async fn messages(&mut self, count: usize) -> Vec<String> {
        let mut messages = Vec::new();
        while messages.len() < count {
            messages.push(self.message().await);
        }
        messages
    }
}

fn logs(dir: &TempDir) -> Logs {
    let docker_host = Some(format!("unix://{}", dir.path().join("engine.sock").display()));
    let policy = Policy { logs: Switch::On, log_paths: vec![dir.path().into()], docker_host, ..Policy::default() };
    let roots = Roots {
        var: dir.path().join("var"),
        run: dir.path().join("run"),
        bin: dir.path().join("bin"),
        ..Roots::default()
    };
    let docker = Docker::new(&policy, crate::signed::Gate::default());
    Logs::new(policy, docker, roots)
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// A program that answers like `journalctl`, by a script, and a journal for it to read.
fn fake_journal(dir: &TempDir, script: &str) {
    fs::create_dir_all(dir.path().join("var/log/journal/machine")).unwrap();
    fs::create_dir_all(dir.path().join("bin")).unwrap();
    let program = dir.path().join("bin/journalctl");
    // Another test's child may hold the file open for writing for a moment, so it is written elsewhere and linked.
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", "printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", &format!("#!/bin/sh\n{script}\n")])
        .arg(&program)
        .status();
    assert!(status.unwrap().success() && program.metadata().unwrap().permissions().mode() & 0o111 != 0);
}

/// An engine with one container, whose log this is.
async fn fake_engine(listener: UnixListener, log: Vec<u8>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        let body = if request.contains("/logs?") { log.as_slice() } else { b"{}" };
        let head = format!("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    }
}

/// A record of an engine's log.
fn record(message: &str) -> Vec<u8> {
    let text = format!("2026-11-20T09:15:30.000000000Z {message}\n");
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [&[1, 0, 0, 0][..], length.as_slice(), text.as_bytes()].concat()
}

/// Lines for which [`SLOW`] takes far longer than a search may, because every `a` begins a match that never ends.
fn slow_lines() -> Vec<String> {
    let mut bits = 1_u32;
    let mut letter = || {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        if bits.is_multiple_of(2) { 'a' } else { 'b' }
    };
    (0..180).map(|_| (0..16 * 1024).map(|_| letter()).collect()).collect()
}

const SLOW: &str = "a[ab]{0,4000}[^ab]";

/// For how long this thread has computed, whatever else the machine does.
fn computed() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[tokio::test]
async fn a_file_yields_its_last_lines_and_then_new_ones() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "one\ntwo\nthree\nhalf");
    let mut followed = Followed::start(&logs(&dir), "file", Some(&path), 2).await;

    assert_eq!(followed.messages(2).await, ["two", "three"]);
    append(&path, " a line\nfour\n");

    assert_eq!(followed.messages(2).await, ["half a line", "four"]);
}

#[tokio::test]
async fn a_rotated_file_is_read_to_its_end_and_its_successor_from_the_beginning() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "one\n");
    let mut followed = Followed::start(&logs(&dir), "file", Some(&path), 10).await;
    assert_eq!(followed.message().await, "one");

    let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
    let next = dir.path().join("next");
    append(&next, "new one\n");
    // One right after the other: a file that is quiet for a second is left.
    fs::rename(&path, dir.path().join("app.log.1")).unwrap();
    fs::rename(&next, &path).unwrap();
    writer.write_all(b"old two\nold unfinished").unwrap();

    assert_eq!(followed.messages(3).await, ["old two", "old unfinished", "new one"]);
    append(&path, "new two\n");
    assert_eq!(followed.message().await, "new two");
}

#[tokio::test]
async fn a_truncated_file_is_read_from_its_beginning() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "one\ntwo\n");
    let mut followed = Followed::start(&logs(&dir), "file", Some(&path), 10).await;
    assert_eq!(followed.messages(2).await, ["one", "two"]);

    fs::copy(&path, dir.path().join("app.log.1")).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    append(&path, "1\n");

    assert_eq!(followed.message().await, "1");
}

#[tokio::test]
async fn a_truncated_file_that_has_grown_again_is_noticed() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "one\n");
    let mut followed = Followed::start(&logs(&dir), "file", Some(&path), 10).await;
    assert_eq!(followed.message().await, "one");

    // In one step, so that no check falls in between.
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(b"another one that is longer\nlast\n").unwrap();

    assert_eq!(followed.messages(2).await, ["another one that is longer", "last"]);
}

#[tokio::test]
async fn a_reader_that_is_far_behind_skips_and_counts_the_omitted_lines() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "first\n");
    let mut followed = Followed::start(&logs(&dir), "file", Some(&path), 10).await;
    assert_eq!(followed.message().await, "first");

    let line = |number: u64| format!("{number:0>99}\n");
    append(&path, &(0..150_000).map(line).collect::<String>());

    let (mut lines, mut dropped) = (0, 0);
    while lines + dropped < 150_000 {
        match followed.next().await {
            Item::Line(read) => {
                assert_eq!(read.message, line(lines + dropped).trim_end());
                lines += 1;
            }
            Item::Dropped(count) => dropped += count,
        }
    }
    assert!(dropped > 50_000, "{dropped}");
    append(&path, "last\n");
    assert_eq!(followed.message().await, "last");
}

#[tokio::test]
async fn a_follower_without_a_receiver_ends_and_returns_its_thread() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "one\n");
    let logs = logs(&dir);
    let followed = Followed::start(&logs, "file", Some(&path), 0).await;

    let Followed { items, running } = followed;
    drop(items);

    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    let all = tokio::time::timeout(PATIENCE, logs.threads.acquire_many(MAX_THREADS as u32)).await;
    assert!(all.is_ok());
}

#[tokio::test]
async fn the_journal_is_followed_without_the_agents_environment() {
    let dir = TempDir::new().unwrap();
    fake_journal(
        &dir,
        r#"printf '{"__REALTIME_TIMESTAMP":"1795166130120000","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"%s"}\n' "$*"
           printf '{"MESSAGE":"%s"}\n' "${HOME:-nothing}"
           exec sleep 1000"#,
    );
    let mut followed = Followed::start(&logs(&dir), "system", None, 7).await;

    let expected =
        "--output=json --output-fields=MESSAGE,SYSLOG_IDENTIFIER,_COMM --all --no-pager --quiet --follow --lines=7";
    let line = LogLine {
        timestamp: Timestamp::parse("2026-11-20T09:15:30.120Z"),
        stream: Some("sshd".to_owned()),
        message: expected.to_owned(),
    };
    assert_eq!(followed.next().await, Item::Line(line));
    assert_eq!(followed.message().await, "nothing");
}

#[tokio::test]
async fn a_journal_reader_that_ends_ends_the_stream() {
    let dir = TempDir::new().unwrap();
    fake_journal(&dir, "exit 1");

    let followed = Followed::start(&logs(&dir), "system", None, 7).await;

    let outcome = tokio::time::timeout(PATIENCE, followed.running).await.unwrap().unwrap();
    assert_eq!(outcome.unwrap_err().code, "log_ended");
}

#[tokio::test]
async fn without_a_journal_the_syslog_file_is_the_systems_log() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("var/log/journal")).unwrap();
    assert!(matches!(logs(&dir).find("system", None, None).await, Err(LogError::NoSystemLog)));

    append(&dir.path().join("var/log/messages"), "2026-11-20T09:30:00+00:00 web sshd[1]: hello\n");
    let mut followed = Followed::start(&logs(&dir), "system", None, 7).await;

    let message = "2026-11-20T09:30:00+00:00 web sshd[1]: hello".to_owned();
    let line = LogLine { timestamp: Timestamp::parse("2026-11-20T09:30:00Z"), stream: None, message };
    assert_eq!(followed.next().await, Item::Line(line));
}

#[tokio::test]
async fn the_journal_is_searched_from_its_end() {
    let dir = TempDir::new().unwrap();
    fake_journal(
        &dir,
        r#"test "$6 $7 $8" = "--reverse --since=@1795166100 --until=@1795166131" || exit 1
           for second in 131 130 129 90; do
               printf '{"__REALTIME_TIMESTAMP":"1795166%s000000","MESSAGE":"at %s"}\n' $second $second
           done
           exec sleep 1000"#,
    );
    let params = json!({
        "source": "system", "since": "2026-11-20T09:15:00Z", "until": "2026-11-20T09:15:30Z", "q": "at",
    });

    let found = logs(&dir).query(params, None).await.unwrap();

    let line = |second: u32, message: &str| json!({"timestamp": format!("2026-11-20T09:15:{second}.000Z"), "stream": null, "message": message});
    let expected = [line(29, "at 129"), line(30, "at 130")];
    assert_eq!(found, json!({"lines": expected, "truncated": false, "stopped_at": null}));
}

#[tokio::test]
async fn a_file_is_searched_from_its_end() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    append(&path, &(0..100_000).map(|number| format!("line {number}\n")).collect::<String>());
    let ask = async |params: Value| {
        let mut query = json!({"source": "file", "path": path});
        query.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let found = logs(&dir).query(query, None).await.unwrap();
        let messages = found["lines"].as_array().unwrap().iter().map(|line| line["message"].clone());
        messages.collect::<Vec<_>>()
    };

    assert_eq!(ask(json!({"tail": 2})).await, ["line 99998", "line 99999"]);
    assert_eq!(ask(json!({"q": "LINE 777"})).await.len(), 0);
    assert_eq!(ask(json!({"q": "line 7777", "tail": 10_000})).await.len(), 11);
    assert_eq!(ask(json!({"q": "^line [12]$", "regex": true})).await, ["line 1", "line 2"]);
}

#[tokio::test]
async fn searches_obey_the_policy_too() {
    let dir = TempDir::new().unwrap();
    let policy = Policy { log_paths: vec![dir.path().into()], docker: DockerAccess::Off.into(), ..Policy::default() };
    let closed = Logs::new(policy.clone(), Docker::new(&policy, crate::signed::Gate::default()), Roots::default());
    let code = async |logs: Logs, params: Value| logs.query(params, None).await.unwrap_err().code;

    for source in ["system", "file", "container"] {
        let question = json!({"source": source, "container_id": "web", "path": dir.path().join("app.log")});
        assert_eq!(code(closed.clone(), question).await, "agent_refused", "{source}");
    }
    let open = logs(&dir);
    let cases = [
        (json!({"source": "file", "path": "/etc/passwd"}), "path_not_allowed"),
        (json!({"source": "file"}), "invalid_request"),
        (json!({"source": "container"}), "invalid_request"),
        (json!({"source": "mail"}), "unsupported_source"),
        (json!({"q": "x"}), "invalid_request"),
        (json!({"source": "file", "path": dir.path().join("none")}), "not_found"),
        (json!({"source": "file", "path": dir.path()}), "not_a_file"),
    ];
    for (params, expected) in cases {
        assert_eq!(code(open.clone(), params.clone()).await, expected, "{params}");
    }
}

#[tokio::test]
async fn a_slow_pattern_ends_in_time_and_leaves_the_agents_thread_alone() {
    let dir = TempDir::new().unwrap();
    let lines = slow_lines();
    let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
    tokio::spawn(fake_engine(listener, lines.iter().flat_map(|line| record(line)).collect()));
    let entries = dir.path().join("entries");
    append(&entries, &lines.iter().map(|line| format!("{}\n", json!({"MESSAGE": line}))).collect::<String>());
    fake_journal(&dir, &format!("exec cat '{}'", entries.display()));
    let search = async |source: &str| {
        let params = json!({"source": source, "container_id": "web", "q": SLOW, "regex": true});
        logs(&dir).query(params, None).await.unwrap()
    };

    let before = computed();
    let (container, journal) = tokio::join!(search("container"), search("system"));
    let used = computed() - before;

    for found in [container, journal] {
        assert_eq!((&found["lines"], &found["truncated"]), (&json!([]), &json!(true)));
    }
    assert!(used < Duration::from_secs(5), "{used:?}");
}

#[tokio::test]
async fn the_systems_log_is_looked_for_on_a_thread() {
    let dir = TempDir::new().unwrap();
    let logs = logs(&dir);

    let _all = logs.threads.acquire_many(MAX_THREADS as u32).await.unwrap();

    assert!(matches!(logs.find("system", None, None).await, Err(LogError::Busy)));
}
