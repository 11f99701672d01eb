//! Questions to the person at the terminal, and secrets from files.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;

use super::interrupts::Ends;
use crate::context::store::expect_private;
use crate::error::Failure;

/// Secrets are short; what is longer is another file by mistake.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Whether somebody can answer.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether somebody can type a secret: that goes past standard input, which may be something else.
pub fn can_ask_secret() -> bool {
    io::stderr().is_terminal() && (io::stdin().is_terminal() || has_terminal())
}

#[cfg(unix)]
fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

#[cfg(not(unix))]
fn has_terminal() -> bool {
    false
}

/// A line that the terminal shows.
pub async fn ask(question: &str) -> Result<String, Failure> {
    let question = question.to_owned();
    blocking(move || {
        write!(io::stderr(), "{question}: ")?;
        let mut line = String::new();
        if io::stdin().read_line(&mut line)? == 0 {
            return Err(Failure::failed("cancelled"));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    })
    .await
}

/// A line that the terminal does not show.
pub async fn ask_secret(question: &str) -> Result<String, Failure> {
    // A signal must not leave the terminal raw.
    let mut ends = Ends::listen()?;
    write!(io::stderr(), "{question}: ")?;
    let raw = Raw::begin()?;
    let answer = tokio::select! {
        answer = blocking(read_hidden) => answer,
        failure = ends.failure() => Err(failure),
    };
    drop(raw);
    // Where the terminal was closed this fails, and the signal is the reason.
    let _ = writeln!(io::stderr());
    answer
}

/// Yes, or a failure.
pub async fn confirm(question: &str) -> Result<(), Failure> {
    if !is_possible() {
        return Err(Failure::usage("nobody can be asked here: confirm with --yes"));
    }
    let answer = ask(&format!("{question} [y/N]")).await?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        Ok(())
    } else {
        Err(Failure::failed("cancelled"))
    }
}

/// The text of a file that no other user can read; `-` is the standard input.
pub fn read_secret(path: &Path) -> Result<String, Failure> {
    let fault = |what: String| Failure::usage(format!("cannot read {}: {what}", path.display()));
    let mut text = String::new();
    if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_SECRET_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| fault(error.to_string()))?;
    } else {
        let file = fs::File::open(path).map_err(|error| fault(error.to_string()))?;
        expect_private(&file).map_err(fault)?;
        file.take(MAX_SECRET_BYTES).read_to_string(&mut text).map_err(|error| fault(error.to_string()))?;
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The terminal gives keys as they are pressed until this is dropped.
pub struct Raw(());

impl Raw {
    pub fn begin() -> Result<Self, Failure> {
        terminal::enable_raw_mode()?;
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}

fn read_hidden() -> Result<String, Failure> {
    let mut answer = String::new();
    loop {
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match edited(&mut answer, key) {
            Edit::More => {}
            Edit::Done => return Ok(answer),
            Edit::Cancelled => return Err(Failure::failed("cancelled")),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Edit {
    More,
    Done,
    Cancelled,
}

/// Whether Ctrl makes a key something else than its character. On Windows AltGr arrives as Ctrl with Alt, and types characters.
pub fn is_control(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && !key.modifiers.contains(KeyModifiers::ALT)
}

/// As a terminal's own line editor.
fn edited(answer: &mut String, key: KeyEvent) -> Edit {
    let is_control = is_control(key);
    match key.code {
        KeyCode::Enter => return Edit::Done,
        KeyCode::Char('c' | 'd') if is_control => return Edit::Cancelled,
        KeyCode::Char('u') if is_control => answer.clear(),
        KeyCode::Char('j' | 'm') if is_control => return Edit::Done,
        KeyCode::Backspace => drop(answer.pop()),
        KeyCode::Char(character) if !is_control => answer.push(character),
        _ => {}
    }
    Edit::More
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|ended| Err(Failure::failed(ended.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_line_can_be_corrected() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let control = |character| KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL);
        let mut answer = String::new();

        for pressed in [key(KeyCode::Char('x')), control('u'), key(KeyCode::Char('a')), key(KeyCode::Char('ß'))] {
            assert_eq!(edited(&mut answer, pressed), Edit::More);
        }
        edited(&mut answer, key(KeyCode::Backspace));

        assert_eq!(answer, "a");
        assert_eq!(edited(&mut answer, key(KeyCode::Enter)), Edit::Done);
        assert_eq!(edited(&mut answer, control('c')), Edit::Cancelled);
    }

    #[test]
    fn characters_of_alt_gr_are_typed() {
        let alt_gr = |character| KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL | KeyModifiers::ALT);
        let mut answer = String::new();

        for character in ['@', '€', 'ć', 'd'] {
            assert_eq!(edited(&mut answer, alt_gr(character)), Edit::More, "{character}");
        }

        assert_eq!(answer, "@€ćd");
    }
}
