//! Presses of Ctrl-C, for commands that end something elsewhere before they end themselves.

#[cfg(unix)]
type Presses = tokio::signal::unix::Signal;
#[cfg(windows)]
type Presses = tokio::signal::windows::CtrlC;

use crate::error::Failure;

/// Counts presses of Ctrl-C.
pub struct Interrupts {
    presses: Presses,
    count: u32,
}

impl Interrupts {
    /// From here on Ctrl-C does not end this process.
    pub fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        let presses = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let presses = tokio::signal::windows::ctrl_c()?;
        Ok(Self { presses, count: 0 })
    }

    /// The number of the next press.
    pub async fn next(&mut self) -> u32 {
        match self.presses.recv().await {
            Some(()) => {
                self.count += 1;
                self.count
            }
            None => std::future::pending().await,
        }
    }
}
