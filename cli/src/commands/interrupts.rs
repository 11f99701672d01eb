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

    /// What is asked for, unless Ctrl-C is pressed before it is there.
    pub async fn unless_pressed<T>(&mut self, asked: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            answer = asked => Ok(answer),
            _ = self.next() => Err(Failure::Interrupted("interrupted".to_owned())),
        }
    }
}

/// Signals that end the program, for commands that have changed the terminal.
pub struct Ends {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
    #[cfg(windows)]
    presses: Presses,
}

impl Ends {
    /// From here on the signals only end what waits for them.
    #[cfg(unix)]
    pub fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals =
            [signal(SignalKind::terminate())?, signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?];
        Ok(Self { signals })
    }

    #[cfg(windows)]
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self { presses: tokio::signal::windows::ctrl_c()? })
    }

    /// Returns when the program has to end.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        let [terminate, hangup, interrupt] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
        }
    }

    #[cfg(windows)]
    pub async fn next(&mut self) {
        let _ = self.presses.recv().await;
    }
}
