//! Signals that end the program, for commands that first have to end something elsewhere, or to restore the terminal.
//!
//! Once somebody has listened to them, the system does not end the program any more, also not when nobody listens any longer. From
//! then on [`unattended`] does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal as Received, SignalKind, signal as received};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::error::Failure;

/// How long something elsewhere has to end after SIGTERM or SIGHUP. An agent kills what it cancels after 2 s, and Docker kills a
/// program 10 s after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How many listen to signals now.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
/// Somebody has begun to listen.
static LISTENED: Notify = Notify::const_new();

/// Ends the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Hangup,
    /// Ctrl-C.
    Interrupt,
    Terminate,
}

impl Signal {
    /// The exit code is that of a program which the signal has killed.
    pub fn failure(self) -> Failure {
        let (number, text) = match self {
            Self::Hangup => (1, "ended by SIGHUP"),
            Self::Interrupt => (2, "interrupted"),
            Self::Terminate => (15, "ended by SIGTERM"),
        };
        Failure::Interrupted { exit_code: 128 + number, text: text.to_owned() }
    }
}

/// What a signal asks of a command that has started something elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Cancel it, and wait until it has ended.
    Cancel(Signal),
    /// Leave it alone, and end.
    Leave(Signal),
}

/// Turns signals into demands.
pub struct Interrupts {
    signals: Signals,
    demanded: Demanded,
    _listener: Listener,
}

impl Interrupts {
    /// From here on signals do not end this process.
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self { signals: Signals::unless_ignored()?, demanded: Demanded::default(), _listener: Listener::begin() })
    }

    /// The next demand. Nothing is lost if the caller stops waiting.
    pub async fn next(&mut self) -> Demand {
        let Self { signals, demanded, .. } = self;
        loop {
            let signal = tokio::select! {
                signal = signals.next() => signal,
                signal = demanded.end() => return Demand::Leave(signal),
            };
            if let Some(demand) = demanded.by(signal, Instant::now()) {
                return demand;
            }
        }
    }

    /// What is asked for, unless a signal ends the wait before it is there.
    pub async fn unless_pressed<T>(&mut self, asked: impl Future<Output = T>) -> Result<T, Failure> {
        let Self { signals, demanded, .. } = self;
        let signal = tokio::select! {
            answer = asked => return Ok(answer),
            signal = signals.next() => signal,
            signal = demanded.end() => signal,
        };
        // After SIGTERM there is little time for what comes next, too.
        demanded.by(signal, Instant::now());
        Err(signal.failure())
    }

    /// The reason to end, if SIGTERM or SIGHUP came.
    pub fn ending(&self) -> Option<Failure> {
        self.demanded.ending.map(|(signal, _)| signal.failure())
    }
}

/// What signals have demanded so far.
#[derive(Debug, Default)]
struct Demanded {
    is_cancelled: bool,
    /// SIGTERM or SIGHUP, and when it ends the wait.
    ending: Option<(Signal, Instant)>,
}

impl Demanded {
    /// What a signal demands; none if that was demanded before.
    fn by(&mut self, signal: Signal, now: Instant) -> Option<Demand> {
        let was_cancelled = std::mem::replace(&mut self.is_cancelled, true);
        match signal {
            Signal::Interrupt if was_cancelled => return Some(Demand::Leave(signal)),
            Signal::Interrupt => {}
            // Often two come: of a terminal that is closed and of its shell, or of systemd.
            Signal::Terminate | Signal::Hangup => self.ending = self.ending.or(Some((signal, now + GRACE))),
        }
        (!was_cancelled).then_some(Demand::Cancel(signal))
    }

    /// The signal that ends the wait, when it does.
    async fn end(&self) -> Signal {
        match self.ending {
            Some((signal, at)) => {
                sleep_until(at).await;
                signal
            }
            None => std::future::pending().await,
        }
    }
}

/// Signals that end the program, for commands that have changed the terminal.
pub struct Ends {
    signals: Signals,
    _listener: Listener,
}

impl Ends {
    /// From here on the signals only end what waits for them.
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self { signals: Signals::all()?, _listener: Listener::begin() })
    }

    /// Returns when the program has to end.
    pub async fn next(&mut self) {
        self.signals.next().await;
    }

    /// Why the program has to end, when it has to.
    pub async fn failure(&mut self) -> Failure {
        self.signals.next().await.failure()
    }
}

/// Why the program has to end: a signal came that nobody listened to, after somebody had listened.
pub async fn unattended() -> Failure {
    LISTENED.notified().await;
    let Ok(mut signals) = Signals::unless_ignored() else { return std::future::pending().await };
    loop {
        let signal = signals.next().await;
        if LISTENERS.load(Ordering::Relaxed) == 0 {
            return signal.failure();
        }
    }
}

/// Counts as one that listens until it is dropped.
struct Listener;

impl Listener {
    fn begin() -> Self {
        LISTENERS.fetch_add(1, Ordering::Relaxed);
        LISTENED.notify_one();
        Self
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        LISTENERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: Received,
    terminate: Received,
    hangup: Option<Received>,
}

#[cfg(unix)]
impl Signals {
    fn all() -> Result<Self, Failure> {
        // Afterwards it is not ignored any more.
        is_hangup_ignored();
        Ok(Self { hangup: Some(received(SignalKind::hangup())?), ..Self::without_hangup()? })
    }

    /// What nohup has started continues without its terminal.
    fn unless_ignored() -> Result<Self, Failure> {
        if is_hangup_ignored() { Self::without_hangup() } else { Self::all() }
    }

    fn without_hangup() -> Result<Self, Failure> {
        let (interrupt, terminate) = (received(SignalKind::interrupt())?, received(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup: None })
    }

    async fn next(&mut self) -> Signal {
        let Self { interrupt, terminate, hangup } = self;
        tokio::select! {
            () = next_of(Some(interrupt)) => Signal::Interrupt,
            () = next_of(Some(terminate)) => Signal::Terminate,
            () = next_of(hangup.as_mut()) => Signal::Hangup,
        }
    }
}

/// Returns when it comes; never, if nobody listens to it.
#[cfg(unix)]
async fn next_of(signal: Option<&mut Received>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending().await
    }
}

/// Whether SIGHUP was ignored before anybody listened to it.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    static IS_IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IS_IGNORED.get_or_init(find_hangup_ignored)
}

#[cfg(unix)]
fn find_hangup_ignored() -> bool {
    use std::io::IsTerminal;
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => ignores_hangup(&status),
        // Only Linux says it there. Elsewhere: nohup leads what goes to a terminal to a file.
        Err(_) => !std::io::stdout().is_terminal() && !std::io::stderr().is_terminal(),
    }
}

/// By the description of a process in proc(5): a mask in which signal n is bit n - 1.
#[cfg(unix)]
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn all() -> Result<Self, Failure> {
        Ok(Self(tokio::signal::windows::ctrl_c()?))
    }

    fn unless_ignored() -> Result<Self, Failure> {
        Self::all()
    }

    async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(()) => Signal::Interrupt,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_press_cancels_and_the_second_leaves() {
        let (mut demanded, now) = (Demanded::default(), Instant::now());

        let demands = [(); 3].map(|()| demanded.by(Signal::Interrupt, now));

        let leave = Some(Demand::Leave(Signal::Interrupt));
        assert_eq!(demands, [Some(Demand::Cancel(Signal::Interrupt)), leave, leave]);
        assert_eq!(demanded.ending, None, "nothing ends the wait but another press");
    }

    #[test]
    fn a_signal_that_ends_programs_cancels_once_and_leaves_little_time() {
        let (mut demanded, now) = (Demanded::default(), Instant::now());

        let first = demanded.by(Signal::Hangup, now);
        let second = demanded.by(Signal::Terminate, now + GRACE / 2);

        assert_eq!((first, second), (Some(Demand::Cancel(Signal::Hangup)), None));
        assert_eq!(demanded.ending, Some((Signal::Hangup, now + GRACE)));
        assert_eq!(demanded.by(Signal::Interrupt, now), Some(Demand::Leave(Signal::Interrupt)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_after_ctrl_c_ends_soon_after_sigterm() {
        let (mut demanded, begin) = (Demanded::default(), Instant::now());
        demanded.by(Signal::Interrupt, begin);

        let again = demanded.by(Signal::Terminate, begin);

        assert_eq!(again, None, "it is cancelled already");
        assert_eq!((demanded.end().await, begin.elapsed().as_secs()), (Signal::Terminate, GRACE.as_secs()));
    }

    #[test]
    fn exit_codes_are_those_of_programs_that_signals_have_killed() {
        let codes = [Signal::Hangup, Signal::Interrupt, Signal::Terminate].map(|signal| signal.failure().exit_code());

        assert_eq!(codes, [129, Failure::INTERRUPTED, 143]);
    }

    #[cfg(unix)]
    #[test]
    fn the_system_says_whether_sighup_is_ignored() {
        let status =
            |mask: &str| format!("Name:\tsignalboxctl\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t1\n");

        assert!(ignores_hangup(&status("0000000000001001")));
        assert!(!ignores_hangup(&status("0000000000001000")));
        assert!(!ignores_hangup(""));
    }
}
