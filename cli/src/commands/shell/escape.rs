//! The sequences that are for this program, and not for the server: those of ssh. Pure.

/// Finds them in what is typed.
#[derive(Debug)]
pub struct Escape {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is for this program.
    Off,
    LineStart,
    Inside,
    /// `~` was typed at the beginning of a line, and is held back.
    Tilde,
}

/// What to do with what was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Send(String),
    /// Show the sequences, and send this.
    Help(String),
    Leave,
}

impl Escape {
    pub fn new() -> Self {
        Self { state: State::LineStart }
    }

    pub fn none() -> Self {
        Self { state: State::Off }
    }

    pub fn pass(&mut self, typed: &str) -> Outcome {
        let mut send = String::with_capacity(typed.len() + 1);
        let mut wants_help = false;
        for character in typed.chars() {
            match (self.state, character) {
                (State::Tilde, '.') => return Outcome::Leave,
                (State::Tilde, '?') => {
                    wants_help = true;
                    self.state = State::LineStart;
                    continue;
                }
                (State::Tilde, '~') => send.push('~'),
                (State::Tilde, other) => send.extend(['~', other]),
                (State::LineStart, '~') => {
                    self.state = State::Tilde;
                    continue;
                }
                (_, other) => send.push(other),
            }
            self.state = match (self.state, character) {
                (State::Off, _) => State::Off,
                (_, '\r' | '\n') => State::LineStart,
                _ => State::Inside,
            };
        }
        if wants_help { Outcome::Help(send) } else { Outcome::Send(send) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(outcome: Outcome) -> String {
        match outcome {
            Outcome::Send(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_tilde_at_the_beginning_of_a_line_is_special() {
        let mut escape = Escape::new();

        assert_eq!(sent(escape.pass("ls ~.\r")), "ls ~.\r");
        assert_eq!(sent(escape.pass("~~a\r")), "~a\r");
        assert_eq!(sent(escape.pass("~/bin/x\r")), "~/bin/x\r");
        assert_eq!(escape.pass("~?"), Outcome::Help(String::new()));
        assert_eq!(escape.pass("~."), Outcome::Leave);
    }

    #[test]
    fn a_sequence_may_arrive_in_pieces() {
        let mut escape = Escape::new();

        assert_eq!(sent(escape.pass("x\r~")), "x\r");
        assert_eq!(escape.pass("."), Outcome::Leave);
        assert_eq!(sent(Escape::none().pass("~.")), "~.");
    }
}
