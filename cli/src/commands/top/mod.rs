//! All servers in one live table.

mod feed;
mod keys;
mod model;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use ratatui::DefaultTerminal;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Call;
use super::interrupts::Ends;
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use feed::Update;
use keys::Step;
use model::{Model, Sort};

/// Show all servers live, like top
///
/// Keys: arrows move, c m d l i o u n s sort by CPU, memory, disk, load, incoming and outgoing traffic, uptime, name and status, r
/// reverses, / filters by name and tag, q ends. Without a terminal use --once.
#[derive(Debug, Args)]
pub struct Top {
    /// Only servers with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// The column to sort by at the beginning
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
    sort: Sort,
    /// Print the table once and end
    #[arg(long)]
    once: bool,
}

/// At most five frames a second: a thousand servers change more often than anybody can read. Keys are answered at once.
const FRAME: Duration = Duration::from_millis(200);
/// Updates that wait for a frame; then the socket is not read, and the service merges what changes.
const QUEUE: usize = 64;
/// The service sends all servers at once; a service that does not is too busy.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(15);

impl Top {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        let (sender, updates) = mpsc::channel(QUEUE);
        // It ends with the channel.
        tokio::spawn(feed::run(std::sync::Arc::clone(&call.api), self.tag.clone(), sender));
        let model = Model::new(self.sort);
        if self.once {
            return once(call, model, updates).await;
        }
        call.out.expect_no_csv()?;
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::usage("top needs a terminal: use --once to print the table"));
        }
        let mut ends = Ends::listen()?;
        let mut screen = Screen::begin()?;
        live(&mut screen.0, model, updates, &mut ends, call.out.colours).await
    }
}

/// The second screen of the terminal, until it is dropped.
struct Screen(DefaultTerminal);

impl Screen {
    fn begin() -> Result<Self, Failure> {
        Ok(Self(ratatui::try_init()?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn live(
    terminal: &mut DefaultTerminal,
    mut model: Model,
    mut updates: mpsc::Receiver<Update>,
    ends: &mut Ends,
    has_colours: bool,
) -> Result<(), Failure> {
    let mut events = EventStream::new();
    let mut drawn = Instant::now();
    terminal.draw(|frame| view::draw(frame, &mut model, has_colours))?;
    // When the next frame is due; none while nothing has changed.
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => match keys::press(&mut model, key) {
                    Step::Stay => due = Some(Instant::now()),
                    Step::End => return Ok(()),
                },
                Some(Ok(_)) => due = Some(Instant::now()),
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            update = updates.recv() => match update {
                Some(Update::Failed(failure)) => return Err(failure),
                Some(update) => {
                    model.apply(update);
                    due = due.or(Some(drawn + FRAME));
                }
                None => return Ok(()),
            },
            () = until(due) => {
                drawn = Instant::now();
                due = None;
                terminal.draw(|frame| view::draw(frame, &mut model, has_colours))?;
            }
            () = ends.next() => return Ok(()),
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn once(call: &Call, mut model: Model, mut updates: mpsc::Receiver<Update>) -> Result<(), Failure> {
    let whole = async {
        while !model.is_complete() {
            match updates.recv().await {
                Some(Update::Failed(failure)) => return Err(failure),
                Some(update) => model.apply(update),
                None => return Err(Failure::failed("the service closed the socket early")),
            }
        }
        Ok(())
    };
    let late = |_| Failure::Unreachable("the service did not send all servers in time".to_owned());
    tokio::time::timeout(COMPLETE_TIMEOUT, whole).await.map_err(late)??;
    let mut table = Table::new(view::HEADINGS);
    let mut values: Vec<Value> = Vec::new();
    for row in model.shown() {
        let [name, status, numbers @ ..] = view::cells(row);
        table.row([Cell::new(name), Cell::word(status)].into_iter().chain(numbers.map(Cell::number)));
        values.push(json!({"server_id": row.id, "name": row.name, "tags": row.tags, "state": row.state}));
    }
    call.out.list(&table, &values)
}
