//! A message in words.

use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;

use super::limit::cut;
use crate::alert_words::Severity;
use crate::notify::message::{Event, Item, Message};

/// The longest line. Markup makes six of one character at most, and one line must fit everywhere.
const LONGEST_LINE: usize = 480;
/// The longest name in a headline, which has to fit into a phone's notification.
const LONGEST_NAME: usize = 60;

/// How it is to look, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Test,
    Resolved,
    Info,
    Warning,
    Critical,
}

/// A message in words, free of what could change how it looks, but not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Of the worst.
    pub tone: Tone,
    pub headline: String,
    /// One an alert.
    pub lines: Vec<Line>,
    /// Where to look at it.
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

    /// As 0xRRGGBB.
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

impl Told {
    pub fn new(message: &Message, public_url: Option<&str>) -> Self {
        let lines: Vec<Line> = message.items.iter().map(|item| Line::new(item, message, public_url)).collect();
        let link = match lines.as_slice() {
            [line] => line.link.clone(),
            _ => public_url.map(|url| link(url, "/alerts")),
        };
        let tone = lines.iter().map(|line| line.tone).max().unwrap_or(Tone::Test);
        Self { tone, headline: headline(message, tone), lines, link }
    }

    /// The lines, each behind its emoji and passed through `escape`.
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

/// The server's name, or how many they are.
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
        return format!("This is a test of the channel “{}”. Alerts arrive like this.", name(&message.channel));
    };
    let what = what(alert, &item.server_name);
    match item.event {
        Event::Test | Event::Triggered => what,
        Event::Reminder => format!("Active for {}: {what}", span(alert.triggered_at, message.at)),
        Event::Resolved => {
            let after = span(alert.triggered_at, alert.resolved_at.unwrap_or(message.at));
            match alert.resolved_by.as_deref() {
                Some("threshold_deleted") => format!("Threshold removed after {after}: {what}"),
                Some("target_gone") => format!("No longer there after {after}: {what}"),
                Some("recovery") | None => format!("Recovered after {after}: {what}"),
                Some(_) => format!("Resolved by hand after {after}: {what}"),
            }
        }
    }
}

/// What the alert says, and where: its message mostly names the server itself.
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

/// One line without anything invisible: no control characters, and none that turn the direction of a text or hide in it.
pub fn clean(text: &str) -> String {
    text.chars().map(|letter| if is_visible(letter) { letter } else { ' ' }).collect::<String>().trim().to_owned()
}

fn is_visible(letter: char) -> bool {
    let hides = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !hides
}
