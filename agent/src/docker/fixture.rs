//! A Docker with a container's log, for tests of how logs are read.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::container::LogsParams;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};

use super::{Docker, logs};
use crate::policy::{DockerAccess, Policy};
use crate::signed::Gate;

pub const STDOUT: u8 = 1;
pub const STDERR: u8 = 2;

/// Far longer than anything takes here, on a machine under load too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A record of a second, as an engine frames it.
pub fn record(stream: u8, second: usize, text: &str) -> Vec<u8> {
    let text = format!("2026-11-20T09:{:02}:{:02}.000000000Z {text}", second / 60, second % 60);
    [&[stream, 0, 0, 0], &u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}

/// Lines of one record each, one a second.
pub fn short_lines(stream: u8, seconds: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    seconds.into_iter().map(|second| record(stream, second, &format!("{second}\n"))).collect()
}

/// Lines in so many pieces, one a second.
pub fn long_lines(pieces: usize, seconds: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    let piece = move |second: usize, number: usize| {
        let end = if number == pieces { "\n" } else { "" };
        record(STDOUT, second, &format!("{second}.{number} {end}"))
    };
    seconds.into_iter().flat_map(|second| (1..=pieces).map(move |number| piece(second, number))).collect()
}

pub fn short_messages(seconds: impl IntoIterator<Item = usize>) -> Vec<String> {
    seconds.into_iter().map(|second| second.to_string()).collect()
}

pub fn long_messages(pieces: usize, seconds: impl IntoIterator<Item = usize>) -> Vec<String> {
    let message = |second: usize| (1..=pieces).map(|number| format!("{second}.{number} ")).collect::<String>();
    seconds.into_iter().map(message).collect()
}

/// How an answer with records ends.
pub enum Ending {
    Whole,
    /// The connection ends before the first record.
    Broken,
    /// The beginning of a line comes, longer than a connection's buffers, and then nothing more.
    Stalled,
}

/// A Docker with a container's log, of which it sends as many of the last records as it is asked for. Once they were followed
/// to their end, the container is removed.
pub struct Played {
    pub docker: Docker,
    tails: mpsc::Receiver<String>,
    stalled: Arc<Notify>,
    _directory: TempDir,
}

impl Played {
    pub fn new(log: Vec<Vec<u8>>) -> Self {
        Self::scripted(log, |_, _| Ending::Whole)
    }

    /// One whose answers with records end as the script says. It gets the number of each, from 1 on, and may change the log
    /// before.
    pub fn scripted(
        log: Vec<Vec<u8>>,
        script: impl FnMut(usize, &mut Vec<Vec<u8>>) -> Ending + Send + 'static,
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("engine.sock");
        let ((tell, tails), stalled) = (mpsc::channel(10), Arc::new(Notify::new()));
        tokio::spawn(play(UnixListener::bind(&path).unwrap(), log, script, tell, Arc::clone(&stalled)));
        let docker_host = Some(format!("unix://{}", path.display()));
        let policy = Policy { docker: DockerAccess::Read.into(), docker_host, ..Policy::default() };
        Self { docker: Docker::new(&policy, Gate::default()), tails, stalled, _directory: directory }
    }

    /// The messages of an answer, and how many records were requested.
    pub async fn read(mut self, params: &LogsParams) -> (Vec<String>, Vec<String>) {
        let logs = logs::read(&self.docker.engine, params).await.unwrap();
        assert!(!logs.truncated);
        (logs.lines.into_iter().map(|line| line.message).collect(), self.tails())
    }

    pub fn tails(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.tails.try_recv().ok()).collect()
    }

    /// The messages of all lines that are followed until the container is removed.
    pub async fn follow(&self, tail: u32) -> Vec<String> {
        let (lines, mut followed) = mpsc::channel(1_000);
        let end = tokio::time::timeout(PATIENCE, self.docker.follow("web", tail, lines)).await.unwrap();
        assert_eq!(end.unwrap_err().code, "container_not_found");
        std::iter::from_fn(|| followed.try_recv().ok()).map(|line| line.message).collect()
    }

    /// Runs `work` with a clock that is paused until an answer stalls, and then jumps ahead by `limit`.
    pub async fn past_its_stall<T>(&self, limit: Duration, work: impl Future<Output = T>) -> T {
        // Tokio advances a paused clock where everything waits, even for a connection, but not while a thread is busy.
        let (_release, released) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || released.recv());
        tokio::time::pause();
        tokio::pin!(work);
        tokio::select! {
            outcome = &mut work => return outcome,
            () = self.stalled.notified() => {}
        }
        tokio::time::advance(limit).await;
        tokio::time::resume();
        tokio::time::timeout(PATIENCE, work).await.unwrap()
    }
}

async fn play(
    listener: UnixListener,
    mut log: Vec<Vec<u8>>,
    mut script: impl FnMut(usize, &mut Vec<Vec<u8>>) -> Ending,
    tell: mpsc::Sender<String>,
    stalled: Arc<Notify>,
) {
    let (mut answers, mut is_removed, mut open) = (0, false, Vec::new());
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        let Some((_, rest)) = request.split_once("&tail=") else {
            let (status, body) = match (request.contains("/_ping"), is_removed) {
                (true, _) => ("200 OK", ""),
                (false, true) => ("404 Not Found", r#"{"message":"No such container: web"}"#),
                (false, false) => ("200 OK", r#"{"Id":"web","State":{"Running":true}}"#),
            };
            stream.write_all(&answer(status, body.len(), body.as_bytes())).await.unwrap();
            continue;
        };
        let tail = rest.split(['&', ' ']).next().unwrap();
        tell.send(tail.to_owned()).await.unwrap();
        answers += 1;
        let ending = script(answers, &mut log);
        let first = tail.parse().map_or(0, |count: usize| log.len().saturating_sub(count));
        let records = match ending {
            Ending::Whole => log[first..].concat(),
            Ending::Broken => Vec::new(),
            Ending::Stalled => record(STDOUT, 0, &"x".repeat(16 * 1024)).repeat(256),
        };
        let missing = usize::from(!matches!(ending, Ending::Whole));
        stream.write_all(&answer("200 OK", records.len() + missing, &records)).await.unwrap();
        match ending {
            Ending::Whole => is_removed = request.contains("&follow=1"),
            Ending::Broken => {}
            Ending::Stalled => {
                open.push(stream);
                stalled.notify_one();
            }
        }
    }
}

fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}
