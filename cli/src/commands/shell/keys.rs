//! What the user does: keys, and signals.

use super::escape::{Escape, Outcome};
use super::input::Input;
use crate::commands::interrupts::Ends;

/// As it arrives where keys come one by one.
const CTRL_C: char = '\u{3}';

pub struct Keys<'a> {
    input: Input,
    escape: Escape,
    ends: &'a mut Ends,
}

impl<'a> Keys<'a> {
    pub fn begin(escape: Escape, ends: &'a mut Ends) -> Self {
        Self { input: Input::begin(), escape, ends }
    }

    /// The next that is to be sent. A signal leaves the terminal.
    pub async fn next(&mut self) -> Outcome {
        let Self { input, escape, ends } = self;
        tokio::select! {
            text = input.next() => escape.pass(&text),
            () = ends.next() => Outcome::Leave,
        }
    }

    /// Returns when the user does not want to wait for the terminal. Everything else that is typed is lost.
    pub async fn given_up(&mut self) {
        let Self { input, escape, ends } = self;
        loop {
            tokio::select! {
                text = input.next() => {
                    if text.contains(CTRL_C) || escape.pass(&text) == Outcome::Leave {
                        return;
                    }
                }
                () = ends.next() => return,
            }
        }
    }
}
