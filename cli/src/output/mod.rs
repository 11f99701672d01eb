//! What the program prints: results to standard output, everything else to standard error.

pub mod spark;
pub mod table;
pub mod text;
pub mod time;
pub mod writer;

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value;

use crate::error::Failure;
use table::Table;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// The objects of the API; live output is one object per line
    Json,
    /// The columns for spreadsheets
    Csv,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColourChoice {
    /// In a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// A colour of the terminal's own palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }

    /// Of a status, a state or a severity.
    pub fn of_word(word: &str) -> Self {
        match word {
            "online" | "running" | "succeeded" | "resolved" => Self::Green,
            "critical" | "failed" | "timed_out" | "dead" | "lost" | "active" => Self::Red,
            "warning" | "offline" | "acknowledged" | "paused" | "restarting" => Self::Yellow,
            "pending" | "exited" | "created" | "skipped" | "cancelled" | "info" => Self::Dim,
            _ => Self::Plain,
        }
    }
}

/// Standard output, as the user wants it.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    pub format: Format,
    pub colours: bool,
    pub is_terminal: bool,
}

impl Out {
    pub fn new(format: Format, choice: ColourChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let wants_none = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let colours = match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => {
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                is_terminal && !is_dumb && !wants_none("NO_COLOR") && understands_colours()
            }
        };
        Self { format, colours, is_terminal }
    }

    /// `text` in a colour, or as it is.
    pub fn paint(&self, paint: Paint, text: &str) -> String {
        if self.colours && paint != Paint::Plain {
            format!("\x1b[{}m{text}\x1b[0m", paint.code())
        } else {
            text.to_owned()
        }
    }

    /// One line, at once.
    pub fn line(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()?;
        Ok(())
    }

    /// An object of the API: whole for results, a line for what is live.
    pub fn json(&self, value: &Value) -> Result<(), Failure> {
        self.line(&self.json_text(value)?)
    }

    pub fn json_line(&self, value: &Value) -> Result<(), Failure> {
        self.line(&self.json_line_text(value))
    }

    /// What [`Self::json`] prints.
    pub fn json_text(&self, value: &Value) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
        Ok(self.as_read(text))
    }

    /// What [`Self::json_line`] prints.
    pub fn json_line_text(&self, value: &Value) -> String {
        self.as_read(value.to_string())
    }

    /// A program reads it as the service sent it.
    fn as_read(&self, json: String) -> String {
        if self.is_terminal { text::escaped(&json) } else { json }
    }

    /// A list, in the format that the user chose.
    pub fn list(&self, table: &Table, values: &[Value]) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.json(&Value::Array(values.to_vec())),
            Format::Csv if self.is_terminal => self.raw(table.cleaned().csv().as_bytes()),
            Format::Csv => self.raw(table.csv().as_bytes()),
            Format::Table => self.raw(table.text(self).as_bytes()),
        }
    }

    /// What happened, or the object that it happened to.
    pub fn done(&self, sentence: &str, value: &Value) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.json(value),
            Format::Table | Format::Csv => self.line(sentence),
        }
    }

    /// Bytes as they are.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// Commands without columns have no table to write.
    pub fn expect_no_csv(&self) -> Result<(), Failure> {
        match self.format {
            Format::Csv => Err(Failure::usage("this has no columns: use --output table or --output json")),
            Format::Table | Format::Json => Ok(()),
        }
    }
}

/// For what acts: that nobody reads what it prints, as after `| head`, neither ends it nor makes it succeed.
pub fn even_if_unread(printed: Result<(), Failure>) -> Result<(), Failure> {
    match printed {
        Err(Failure::NoReader) => Ok(()),
        printed => printed,
    }
}

/// Lines to standard error, under the program's name. They may have words of servers in them. If nobody reads it, nothing can be
/// done.
pub fn complain(text: &str) {
    let lines: Vec<String> = text.lines().map(text::clean).collect();
    let _ = writeln!(io::stderr().lock(), "signalboxctl: {}", lines.join("\n"));
}

/// A line to standard error for people who wait.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(windows)]
fn understands_colours() -> bool {
    // Asks the console to.
    crossterm::ansi_support::supports_ansi()
}

#[cfg(not(windows))]
fn understands_colours() -> bool {
    true
}
