//! The measurements of any store of metrics.

use std::time::Duration;

use reqwest::RequestBuilder;
use signalbox_protocol::Timestamp;
use tokio::task::JoinSet;

use crate::data::Dataset;
use crate::process::Cpu;
use crate::question::{Mode, Question};
use crate::stop::Stop;

/// Samples in a message of the server that hands over old ones under load.
pub const OLD_SAMPLES_A_MESSAGE: u64 = 512;

/// A store that runs, is fed, and answers questions.
pub trait Store {
    const NAME: &'static str;
    /// Whether it caches answers, so that a repeated query measures something else.
    const KEEPS_ANSWERS: bool = false;

    /// Hands it every sample, or the last part of them; ends when it has acknowledged them.
    async fn feed(&mut self, data: &Dataset) -> anyhow::Result<Fed>;

    /// Waits until its background work on new data is done.
    async fn settle(&mut self) -> anyhow::Result<Vec<Note>>;

    /// Stops it cleanly, reads its files, and starts it again.
    async fn stored(&mut self) -> anyhow::Result<Stored>;

    /// Compares its answers with the samples that it received, since `fed`.
    async fn check(&mut self, data: &Dataset, fed: &Fed) -> anyhow::Result<Checked>;

    /// Stops it and starts it again, so that its own memory is empty.
    async fn restart(&mut self) -> anyhow::Result<()>;

    fn request(&self, question: &Question, mode: Mode) -> anyhow::Result<RequestBuilder>;

    /// Every server sends a sample an interval, and one hands over old ones; each task ends with the number of samples
    /// acknowledged. `None` where this store cannot be fed so.
    async fn start_load(&self, data: &Dataset, stop: &Stop) -> anyhow::Result<Option<JoinSet<anyhow::Result<u64>>>>;
}

/// A further row of the report.
pub type Note = (String, String);

/// How feeding went.
#[derive(Debug, Clone)]
pub struct Fed {
    pub samples: u64,
    /// No earlier sample was handed over.
    pub first: Timestamp,
    pub elapsed: Duration,
    /// Of the store; none for a separate program that has ended.
    pub cpu: Option<Cpu>,
    /// Of this program, the samples' making included.
    pub generator: Cpu,
    pub peak_rss: Option<u64>,
}

/// Bytes on disk.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// Of everything in its folder.
    pub bytes: u64,
    /// Only of the compressed samples, where that is known.
    pub raw_bytes: Option<u64>,
    pub notes: Vec<Note>,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Points compared one by one, and how many of them are missing, too many, or differ.
    pub compared: u64,
    pub wrong: u64,
    /// The first that was wrong.
    pub example: Option<String>,
    pub notes: Vec<Note>,
}

impl Checked {
    /// Notes one comparison.
    pub fn expect(&mut self, is_right: bool, otherwise: impl FnOnce() -> String) {
        self.compared += 1;
        if !is_right {
            self.wrong += 1;
            self.example.get_or_insert_with(otherwise);
        }
    }
}
