//! Fetches a build. A thread writes it to the disk and hashes it while it arrives, so that no disk delays the agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_LENGTH;
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::build::{Build, program};
use super::record::{create, path_of, sync};
use crate::backoff::{self, Backoff};
use crate::config::Timing;
use crate::connection::{DialError, Endpoint};
use crate::text::hex;

/// Pieces between the network and the disk, of some ten kilobytes each.
const MAX_PIECES: usize = 4;

/// Why a build could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the service has no such program: it answered {0}")]
    Status(StatusCode),
    #[error("the download broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the program has another length than the release says")]
    Length,
    #[error("the program is not the one that was signed: its SHA-256 is another one")]
    Hash,
    #[error("the download took too long")]
    TimedOut,
    #[error("the program cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Fetches the program of a build into its directory.
pub async fn fetch(endpoint: Endpoint<'_>, build: &Build, directory: &Path) -> Result<(), DownloadError> {
    let end = Instant::now() + endpoint.timing.download;
    let answer = timeout_at(end, ask(endpoint)).await.map_err(|_| DownloadError::TimedOut)??;
    let (pieces, received) = mpsc::channel(MAX_PIECES);
    let (wanted, place) = (build.clone(), directory.to_owned());
    let writer = tokio::task::spawn_blocking(move || keep(received, &wanted, &place));
    let fed = timeout_at(end, feed(answer, endpoint.timing, build, &pieces)).await;
    drop(pieces);
    // However long the disk takes: until then nothing else is fetched.
    let written = writer.await.unwrap_or_else(|_| Err(io::Error::other("its thread has ended").into()));
    match fed {
        Ok(Ok(())) => written,
        Ok(Err(error)) => Err(error),
        Err(_) => Err(DownloadError::TimedOut),
    }
}

/// Asks for the program, and asks again while the service is too busy to send it.
async fn ask(endpoint: Endpoint<'_>) -> Result<Response<Incoming>, DownloadError> {
    let timing = endpoint.timing;
    let mut backoff = Backoff::new(timing.backoff_first, timing.backoff_most);
    loop {
        let answer = endpoint.get(&endpoint.url.install_path(&program())).await?;
        match answer.status() {
            StatusCode::OK => return Ok(answer),
            StatusCode::SERVICE_UNAVAILABLE => {
                backoff.widen(timing.backoff_busy);
                sleep(backoff.delay(Instant::now(), backoff::random())).await;
            }
            other => return Err(DownloadError::Status(other)),
        }
    }
}

/// Passes on what the service sends. It ends early when the writer wants no more, which then says why.
async fn feed(
    answer: Response<Incoming>,
    timing: &Timing,
    build: &Build,
    pieces: &mpsc::Sender<Bytes>,
) -> Result<(), DownloadError> {
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length != build.bytes) {
        return Err(DownloadError::Length);
    }
    let mut body = answer.into_body();
    loop {
        let frame = timeout(timing.silence, body.frame()).await.map_err(|_| DownloadError::TimedOut)?;
        let Some(frame) = frame else { return Ok(()) };
        let Ok(piece) = frame?.into_data() else { continue };
        if pieces.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

/// Writes the program under a temporary name, and gives it its own once it is whole, right and durable.
fn keep(received: mpsc::Receiver<Bytes>, build: &Build, directory: &Path) -> Result<(), DownloadError> {
    create(directory)?;
    let path = path_of(directory, &build.sha256);
    let part = path.with_extension("part");
    let written = write(received, build, &part).and_then(|()| {
        fs::rename(&part, &path)?;
        Ok(sync(directory)?)
    });
    if written.is_err() {
        _ = fs::remove_file(&part);
    }
    written
}

fn write(mut received: mpsc::Receiver<Bytes>, build: &Build, path: &Path) -> Result<(), DownloadError> {
    _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    let (mut hash, mut left) = (Context::new(&SHA256), build.bytes);
    while let Some(piece) = received.blocking_recv() {
        left = left.checked_sub(piece.len() as u64).ok_or(DownloadError::Length)?;
        hash.update(&piece);
        file.write_all(&piece)?;
    }
    if left > 0 {
        return Err(DownloadError::Length);
    }
    if hex(hash.finish().as_ref()) != build.sha256 {
        return Err(DownloadError::Hash);
    }
    Ok(file.sync_all()?)
}
