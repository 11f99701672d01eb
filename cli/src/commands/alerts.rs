//! Alerts: what is wrong now, and what becomes wrong.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signalbox_protocol::alert::Alert as AlertView;
use signalbox_protocol::frontend::FeedMessage;
use uuid::Uuid;

use super::Call;
use crate::api::backoff::Backoff;
use crate::api::socket::{End, Socket};
use crate::api::types::{Alert, Server};
use crate::api::{Api, parsed, text_of};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::clean;
use crate::output::time::{age, local};
use crate::output::{self, Format, Out, Paint};

/// List, watch, acknowledge and resolve alerts
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Alerts {
    #[command(subcommand)]
    command: Option<AlertsCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum AlertsCommand {
    /// List alerts (the default); those that are not resolved, unless --status says otherwise
    Ls(List),
    /// Show alerts as they are raised and change, beginning with those that are not resolved
    Watch,
    /// Acknowledge alerts, which stops their reminders
    Ack(Chosen),
    /// Resolve alerts by hand
    Resolve(Chosen),
}

#[derive(Debug, Default, Args)]
struct List {
    #[arg(long, value_parser = ["active", "acknowledged", "resolved"], value_name = "STATUS")]
    status: Option<String>,
    #[arg(long, value_parser = ["info", "warning", "critical"], value_name = "SEVERITY")]
    severity: Option<String>,
    /// Only alerts of this server, by name or id
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// At most this many of the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

#[derive(Debug, Args)]
struct Chosen {
    /// Ids, or the ends of ids that `alerts` shows
    #[arg(value_name = "ALERT", required = true)]
    alerts: Vec<String>,
}

/// Ids begin with their time, so their ends differ. As many characters are shown.
const SHORT_ID: usize = 8;

impl Alerts {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        match self.command.unwrap_or(AlertsCommand::Ls(self.list)) {
            AlertsCommand::Ls(list) => list.run(call).await,
            AlertsCommand::Watch => watch(call).await,
            AlertsCommand::Ack(chosen) => chosen.act(call, "acknowledge").await,
            AlertsCommand::Resolve(chosen) => chosen.act(call, "resolve").await,
        }
    }
}

/// Not resolved, newest first.
async fn unresolved(api: &Api, filters: &[(&'static str, String)]) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for status in ["active", "acknowledged"] {
        let mut query = filters.to_vec();
        query.push(("status", status.to_owned()));
        all.extend(api.list("/alerts", &query).await?);
    }
    // The form of times sorts like the times.
    all.sort_by(|a, b| text_of(b, "triggered_at").cmp(text_of(a, "triggered_at")));
    Ok(all)
}

impl List {
    async fn run(self, call: &Call) -> Result<(), Failure> {
        let mut query: Vec<(&'static str, String)> = Vec::new();
        if let Some(server) = &self.server {
            query.push(("server_id", call.api.server(server).await?.id.to_string()));
        }
        query.extend(self.severity.map(|severity| ("severity", severity)));
        let mut values = match self.status {
            Some(status) => {
                query.extend([("status", status), ("limit", self.limit.to_string())]);
                parsed(call.api.get("/alerts", &query).await?)?
            }
            None => unresolved(&call.api, &query).await?,
        };
        values.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let mut names = Names::new(&call.api);
        let mut table = Table::new(["SEVERITY", "STATUS", "SINCE", "SERVER", "ALERT", "ID"]);
        for value in &values {
            let alert: Alert = parsed(value.clone())?;
            table.row([
                Cell::word(alert.severity),
                Cell::word(alert.status),
                local(alert.triggered_at).into(),
                names.of(alert.server_id).await.into(),
                alert.message.into(),
                end_of(alert.id).into(),
            ]);
        }
        call.out.list(&table, &values)
    }
}

fn end_of(id: Uuid) -> String {
    let id = id.to_string();
    id.get(id.len() - SHORT_ID..).unwrap_or(&id).to_owned()
}

impl Chosen {
    async fn act(self, call: &Call, verb: &str) -> Result<(), Failure> {
        call.out.expect_no_csv()?;
        // All of them are found before the first changes.
        let mut ids = Vec::new();
        for wanted in &self.alerts {
            ids.push(find(&call.api, wanted).await?);
        }
        for id in ids {
            let value = call.api.act(&format!("/alerts/{id}/{verb}"), &[]).await?;
            let alert: Alert = parsed(value.clone())?;
            output::even_if_unread(match call.out.format {
                Format::Json => call.out.json_line(&value),
                Format::Table | Format::Csv => {
                    call.out.line(&format!("{} is {}: {}", end_of(id), clean(&alert.status), clean(&alert.message)))
                }
            })?;
        }
        Ok(())
    }
}

async fn find(api: &Api, wanted: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    if wanted.len() < SHORT_ID || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(Failure::usage(format!("{wanted:?} is no id of an alert: `signalboxctl alerts` shows them")));
    }
    let ending = wanted.to_lowercase();
    let all = unresolved(api, &[]).await?;
    let ids = all.iter().map(|alert| text_of(alert, "id")).filter(|id| id.ends_with(&ending));
    let found: Vec<Uuid> = ids.filter_map(|id| id.parse().ok()).collect();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(Failure::failed(format!("no alert that is not resolved has an id that ends with {wanted:?}"))),
        _ => Err(Failure::usage(format!(
            "{} alerts have an id that ends with {wanted:?}: write the whole id",
            found.len()
        ))),
    }
}

/// Names of servers, read when the first unknown one is met.
struct Names {
    api: Arc<Api>,
    known: HashMap<Uuid, String>,
}

impl Names {
    fn new(api: &Arc<Api>) -> Self {
        Self { api: Arc::clone(api), known: HashMap::new() }
    }

    /// The name; the id of a server that is gone.
    async fn of(&mut self, id: Uuid) -> String {
        if !self.known.contains_key(&id) {
            for server in self.api.list("/servers", &[]).await.unwrap_or_default() {
                if let Ok(server) = parsed::<Server>(server) {
                    self.known.insert(server.id, server.name);
                }
            }
        }
        // Also that there is none, so that it is asked for once.
        clean(self.known.entry(id).or_insert_with(|| id.to_string()))
    }
}

/// Resolved alerts whose last status is remembered: a peak may still come after it.
const ENDED: usize = 256;

/// The status of each alert that was shown last.
#[derive(Default)]
struct Shown {
    statuses: HashMap<Uuid, String>,
    /// The resolved ones among them, oldest first.
    ended: VecDeque<Uuid>,
}

impl Shown {
    /// Whether the status of an alert is another one than before. A new connection begins with alerts that were shown, and peaks alone
    /// are no news.
    fn is_news(&mut self, id: Uuid, status: &str) -> bool {
        if self.statuses.get(&id).is_some_and(|before| before == status) {
            return false;
        }
        self.statuses.insert(id, status.to_owned());
        if status == "resolved" {
            self.ended.push_back(id);
            if self.ended.len() > ENDED {
                self.ended.pop_front().and_then(|oldest| self.statuses.remove(&oldest));
            }
        }
        true
    }

    /// Those that were not resolved, oldest first.
    fn unresolved(&self) -> BTreeSet<Uuid> {
        self.statuses.iter().filter(|(_, status)| *status != "resolved").map(|(id, _)| *id).collect()
    }

    /// One that was not resolved is out of sight.
    fn forget(&mut self, id: Uuid) {
        self.statuses.remove(&id);
    }
}

/// Alerts that are asked for one by one. If more may have ended, the list of those that have not takes fewer requests.
const FEW: usize = 10;

/// Until somebody ends it: a lost connection is opened again.
async fn watch(call: &Call) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let mut watch = Watch {
        call,
        names: Names::new(&call.api),
        shown: Shown::default(),
        unsure: BTreeSet::new(),
        backoff: Backoff::default(),
    };
    let mut socket = Socket::open(&call.api, "/ws/alerts", &[]).await?;
    loop {
        match watch.follow(&mut socket).await {
            Err(failure) if failure.is_passing_for_reads() => output::complain(&format!("{failure}; reconnecting")),
            outcome => return outcome,
        }
        socket = reopened(call, &mut watch.backoff).await?;
    }
}

/// What is known of the alerts.
struct Watch<'a> {
    call: &'a Call,
    names: Names,
    shown: Shown,
    /// Those that were not resolved before the service began to send all that are not, and that it has not sent since.
    unsure: BTreeSet<Uuid>,
    backoff: Backoff,
}

impl Watch<'_> {
    /// Until the connection ends.
    async fn follow(&mut self, socket: &mut Socket) -> Result<(), Failure> {
        self.begin(socket).await?;
        loop {
            match socket.next().await? {
                FeedMessage::Alert(alert) => {
                    self.backoff.reset();
                    self.unsure.remove(&alert.id);
                    self.show(&alert).await?;
                }
                FeedMessage::Alerts {} => self.begin(socket).await?,
                FeedMessage::Pong => self.show_ended().await?,
                FeedMessage::Dropped { count } => output::complain(&format!("{count} messages are missing here")),
                _ => {}
            }
        }
    }

    /// The service sends all alerts that are not resolved. It answers the ping after them; an older one does not answer it.
    async fn begin(&mut self, socket: &mut Socket) -> Result<(), End> {
        self.unsure = self.shown.unresolved();
        socket.send(&json!({"type": "ping"})).await
    }

    async fn show(&mut self, alert: &AlertView) -> Result<(), Failure> {
        if self.shown.is_news(alert.id, &alert.status) {
            print(&self.call.out, alert, &mut self.names).await?;
        }
        Ok(())
    }

    /// Those that did not come have ended while nobody was connected, unless there are too many for the service to send.
    async fn show_ended(&mut self) -> Result<(), Failure> {
        let mut unsure = std::mem::take(&mut self.unsure);
        if unsure.len() > FEW {
            // Where this fails, the next request fails, too, and says why.
            for value in unresolved(&self.call.api, &[]).await.unwrap_or_default() {
                let alert: AlertView = parsed(value)?;
                if unsure.remove(&alert.id) {
                    self.show(&alert).await?;
                }
            }
        }
        for id in unsure {
            let answer = self.call.api.get(&format!("/alerts/{id}"), &[]).await;
            match answer.and_then(parsed::<AlertView>) {
                Ok(alert) => self.show(&alert).await?,
                Err(Failure::Refused(refusal)) if refusal.status == 404 => self.shown.forget(id),
                // After the next loss of the connection it is asked for again.
                Err(failure) => {
                    output::complain(&format!("some alerts may have ended in the meantime: {failure}"));
                    break;
                }
            }
        }
        Ok(())
    }
}

async fn reopened(call: &Call, backoff: &mut Backoff) -> Result<Socket, Failure> {
    let mut pause = backoff.pause();
    loop {
        tokio::time::sleep(pause).await;
        match Socket::open(&call.api, "/ws/alerts", &[]).await {
            Err(failure) if failure.is_passing_for_reads() => pause = backoff.pause_after(&failure),
            outcome => return outcome,
        }
    }
}

async fn print(out: &Out, alert: &AlertView, names: &mut Names) -> Result<(), Failure> {
    if out.format == Format::Json {
        let value = serde_json::to_value(alert).map_err(|error| Failure::failed(error.to_string()))?;
        return out.json_line(&value);
    }
    let lasted = alert.resolved_at.map(|end| format!(" after {}", age(end.millis_since(alert.triggered_at) / 1000)));
    let paint = if alert.status == "resolved" { Paint::Green } else { Paint::of_word(&alert.severity) };
    let moment = alert.resolved_at.or(alert.acknowledged_at).unwrap_or(alert.triggered_at);
    let state =
        out.paint(paint, &format!("{} {}{}", clean(&alert.severity), clean(&alert.status), lasted.unwrap_or_default()));
    let silenced = if alert.silenced { " (silenced)" } else { "" };
    let server = names.of(alert.server_id).await;
    out.line(&format!("{} {state}{silenced} {server}: {} [{}]", local(moment), clean(&alert.message), end_of(alert.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_of_an_alert_is_news_once() {
        let (mut shown, id) = (Shown::default(), Uuid::now_v7());

        let statuses = ["active", "active", "acknowledged", "resolved", "resolved", "active", "resolved"];
        let news = statuses.map(|status| shown.is_news(id, status));

        assert_eq!(news, [true, false, true, true, false, true, true]);
    }

    #[test]
    fn alerts_may_have_ended_unless_they_were_resolved_or_are_out_of_sight() {
        let mut shown = Shown::default();
        let [active, acknowledged, resolved, gone] = [1, 2, 3, 4].map(Uuid::from_u128);
        for (id, status) in
            [(active, "active"), (acknowledged, "acknowledged"), (resolved, "resolved"), (gone, "active")]
        {
            assert!(shown.is_news(id, status));
        }

        shown.forget(gone);

        assert_eq!(shown.unresolved(), BTreeSet::from([active, acknowledged]));
    }

    #[test]
    fn resolved_alerts_are_remembered_for_a_while() {
        let mut shown = Shown::default();
        let ids: Vec<Uuid> = (0..3 * ENDED).map(|_| Uuid::now_v7()).collect();
        let open = Uuid::now_v7();
        assert!(shown.is_news(open, "active"));

        assert!(ids.iter().all(|id| shown.is_news(*id, "active") && shown.is_news(*id, "resolved")));

        assert!(ids.iter().rev().take(ENDED).all(|id| !shown.is_news(*id, "resolved")));
        assert!(!shown.is_news(open, "active"));
        assert_eq!((shown.statuses.len(), shown.ended.len()), (ENDED + 1, ENDED));
    }
}
