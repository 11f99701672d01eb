//! The text of a message, the same for every kind of channel.

use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;

use super::limit::cut;
use crate::alert_words::Severity;
use crate::notify::message::{Event, Item, Message};
use crate::store::SCHEDULE;

/// The longest line, in characters. Markup turns one character into at most six, and one line must fit every service.
const LONGEST_LINE: usize = 480;
/// The longest name in a headline, in characters: a headline has to fit into a phone's notification.
const LONGEST_NAME: usize = 60;

/// How a message looks, least urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Test,
    Resolved,
    Info,
    Warning,
    Critical,
}

/// A message as text: without control or invisible characters, but not yet escaped for a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageText {
    /// That of the most urgent line.
    pub tone: Tone,
    pub headline: String,
    /// One for each alert.
    pub lines: Vec<Line>,
    /// The page of the alert, or of all alerts if there are several lines.
    pub link: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub tone: Tone,
    pub text: String,
    pub link: Option<String>,
}

impl Tone {
    fn of(item: &Item) -> Self {
        match (item.event, &item.alert) {
            (Event::Test, _) => Self::Test,
            (Event::Resolved, _) => Self::Resolved,
            (Event::Triggered | Event::Reminder, alert) => {
                match alert.as_ref().and_then(|alert| Severity::of(&alert.severity)) {
                    Some(Severity::Info) => Self::Info,
                    Some(Severity::Critical) => Self::Critical,
                    Some(Severity::Warning) | None => Self::Warning,
                }
            }
        }
    }

    pub fn emoji(self) -> &'static str {
        match self {
            Self::Test => "🔔",
            Self::Resolved => "✅",
            Self::Info => "🔵",
            Self::Warning => "🟠",
            Self::Critical => "🔴",
        }
    }

    /// The colour as 0xRRGGBB.
    pub fn colour(self) -> u32 {
        match self {
            Self::Test => 0x757575,
            Self::Resolved => 0x2e7d32,
            Self::Info => 0x1976d2,
            Self::Warning => 0xf57c00,
            Self::Critical => 0xd32f2f,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Test => "Test",
            Self::Resolved => "Resolved",
            Self::Info => "Info",
            Self::Warning => "Warning",
            Self::Critical => "Critical",
        }
    }
}

impl MessageText {
    pub fn new(message: &Message, public_url: Option<&str>) -> Self {
        let lines: Vec<Line> = message.items.iter().map(|item| Line::new(item, message, public_url)).collect();
        let link = match lines.as_slice() {
            [line] => line.link.clone(),
            _ => public_url.map(|url| link(url, "/alerts")),
        };
        let tone = lines.iter().map(|line| line.tone).max().unwrap_or(Tone::Test);
        Self { tone, headline: headline(message, tone), lines, link }
    }

    /// Returns the lines, each with its emoji first and its text passed through `escape`.
    pub fn escaped(&self, escape: fn(&str) -> String) -> Vec<String> {
        self.lines.iter().map(|line| format!("{} {}", line.tone.emoji(), escape(&line.text))).collect()
    }
}

impl Line {
    fn new(item: &Item, message: &Message, public_url: Option<&str>) -> Self {
        let link = match (&item.alert, public_url) {
            (Some(alert), Some(url)) => Some(link(url, &format!("/alerts/{}", alert.id))),
            _ => None,
        };
        Self { tone: Tone::of(item), text: cut(&line(item, message), LONGEST_LINE), link }
    }
}

fn link(public_url: &str, path: &str) -> String {
    format!("{}{path}", public_url.trim_end_matches('/'))
}

fn headline(message: &Message, tone: Tone) -> String {
    match message.items.as_slice() {
        [item] => {
            let server = name(&item.server_name);
            match item.event {
                Event::Test => "Test message from Signalbox".to_owned(),
                Event::Triggered => format!("{}: {server}", tone.word()),
                Event::Reminder => format!("Still {}: {server}", tone.word().to_lowercase()),
                Event::Resolved => format!("Resolved: {server}"),
            }
        }
        items => {
            let resolved = items.iter().filter(|item| item.event == Event::Resolved).count();
            let alerts = items.len() - resolved;
            let servers = servers(items);
            match (alerts, resolved) {
                (0, resolved) => format!("{resolved} alerts resolved on {servers}"),
                (alerts, 0) => format!("{}: {} on {servers}", tone.word(), counted(alerts, "alert")),
                (alerts, resolved) => {
                    format!("{}: {} on {servers}, {resolved} resolved", tone.word(), counted(alerts, "alert"))
                }
            }
        }
    }
}

/// Returns the name of the only server, or the number of servers.
fn servers(items: &[Item]) -> String {
    let mut names: Vec<&str> = items.iter().map(|item| item.server_name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [only] => name(only),
        names => counted(names.len(), "server"),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn name(text: &str) -> String {
    cut(&clean(text), LONGEST_NAME)
}

fn line(item: &Item, message: &Message) -> String {
    let Some(alert) = &item.alert else {
        return format!(
            "This is a test message for the channel “{}”. Alerts will look like this.",
            name(&message.channel)
        );
    };
    let what = what(alert, &item.server_name);
    match item.event {
        Event::Test | Event::Triggered => what,
        Event::Reminder => format!("Active for {}: {what}", span(alert.triggered_at, message.at)),
        Event::Resolved => {
            let after = span(alert.triggered_at, alert.resolved_at.unwrap_or(message.at));
            match alert.resolved_by.as_deref() {
                Some("threshold_deleted") if alert.metric_type == SCHEDULE => {
                    format!("Schedule ended or paused after {after}: {what}")
                }
                Some("threshold_deleted") => format!("Threshold removed after {after}: {what}"),
                Some("target_gone") => format!("Target gone after {after}: {what}"),
                Some("recovery") | None => format!("Recovered after {after}: {what}"),
                Some(_) => format!("Resolved manually after {after}: {what}"),
            }
        }
    }
}

/// Returns the alert's message, with the server's name before it unless the message names the server, as most do.
fn what(alert: &Alert, server_name: &str) -> String {
    let server = name(server_name);
    let text = clean(&alert.message);
    if text.contains(&server) { text } else { format!("{server}: {text}") }
}

fn span(from: Timestamp, to: Timestamp) -> String {
    match to.millis_since(from).max(0) / 1000 {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Returns the text as one line, with control characters, invisible ones and those that change the direction of a text
/// replaced by spaces.
pub fn clean(text: &str) -> String {
    text.chars().map(|letter| if is_visible(letter) { letter } else { ' ' }).collect::<String>().trim().to_owned()
}

fn is_visible(letter: char) -> bool {
    let hides = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !hides
}
