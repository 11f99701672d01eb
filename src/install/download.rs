//! One download, at the speed of its client.

use std::fs::File;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::CHUNK;
use crate::shares::{Permit, Revocable};

/// How long a download may take. Without limits, clients that read nothing could block all others.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The whole download: 6 kB/s for 10 MB.
    pub whole: Duration,
    /// Between two pieces that the client takes.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { whole: Duration::from_secs(30 * 60), pause: Duration::from_secs(60) }
    }
}

/// A program that is being sent, at the speed of its client.
pub struct Download {
    open: Revocable<OpenFile>,
    left: u64,
}

/// The resources that a download occupies.
struct OpenFile {
    file: tokio::fs::File,
    _place: Permit,
}

impl Download {
    /// A download of a file's first bytes, from its current position.
    pub(super) fn new(file: File, bytes: u64, place: Permit, limits: Limits) -> Self {
        let open = OpenFile { file: tokio::fs::File::from_std(file), _place: place };
        Self { open: Revocable::new(open, limits.whole, limits.pause), left: bytes }
    }

    /// Returns the next piece, or `None` at the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.left == 0 {
            return None;
        }
        let most = CHUNK.min(usize::try_from(self.left).unwrap_or(CHUNK));
        let read = async |open: &mut OpenFile| {
            let mut chunk = BytesMut::with_capacity(most);
            let length = open.file.read_buf(&mut chunk).await?;
            Ok::<_, io::Error>((length, chunk))
        };
        match self.open.piece(read).await.flatten() {
            // The file became shorter: the connection is cut, because its length has been announced.
            Ok((0, _)) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok((length, chunk)) => {
                self.left = self.left.saturating_sub(length as u64);
                Some(Ok(chunk.freeze()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Platform, Programs};
    use super::*;
    use crate::shares::line::{self, Stay};
    use crate::shares::{Gate, Share};

    /// A download with these limits that has not started, and the pool of one in which it has the place.
    async fn download(limits: Limits) -> (Gate, Download) {
        let places = Gate::new("downloads", line::Limits { places: 1, waiting: 1, stay: Stay::Brief });
        let directory = tempfile::tempdir().unwrap();
        let platform = Platform::of_program("signalbox-agent-linux-riscv64").unwrap();
        std::fs::write(directory.path().join(platform.program()), "program").unwrap();
        let programs = Programs::new(Some(directory.path().to_owned()), limits);
        let opened = programs.find(platform).await.unwrap().unwrap();
        let download = programs.download(opened, places.try_enter(Share::Service).unwrap());
        (places, download)
    }

    #[tokio::test]
    async fn a_download_that_takes_too_long_loses_its_place() {
        let (short, long) = (Duration::from_millis(10), Duration::from_secs(3_600));

        for limits in [Limits { whole: long, pause: short }, Limits { whole: short, pause: long }] {
            let (places, mut download) = download(limits).await;

            // Succeeds as soon as the place is free.
            let place = places.enter(Share::Service).await.unwrap();
            let piece = download.next().await.unwrap();

            assert_eq!(piece.unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop(place);
        }
    }

    #[tokio::test]
    async fn a_download_at_its_end_leaves_its_place() {
        let (places, mut download) = download(Limits::default()).await;
        assert_eq!(places.inside(), 1);

        assert_eq!(download.next().await.unwrap().unwrap(), "program");
        assert!(download.next().await.is_none());
        drop(download);

        assert_eq!(places.inside(), 0);
    }
}
