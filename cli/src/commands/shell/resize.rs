//! Changes of the terminal's size.

use crate::error::Failure;

#[cfg(unix)]
pub struct Resizes(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Resizes {
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change())?))
    }

    /// Returns after the next change.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

/// A console has no signal for it.
#[cfg(not(unix))]
pub struct Resizes {
    last: Option<(u16, u16)>,
}

#[cfg(not(unix))]
impl Resizes {
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self { last: crossterm::terminal::size().ok() })
    }

    pub async fn next(&mut self) {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let size = crossterm::terminal::size().ok();
            if size != self.last {
                self.last = size;
                return;
            }
        }
    }
}
