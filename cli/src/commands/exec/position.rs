//! Which output of a command was shown. Each socket begins with all output that the service keeps, so a new one repeats. Pure.

/// Offsets in the output of a command.
#[derive(Debug, Default)]
pub struct Position {
    /// What comes before was shown, or it is known that the service did not keep it.
    shown: u64,
    /// Where the socket is.
    reached: u64,
}

impl Position {
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// A new socket begins.
    pub fn begin_again(&mut self) {
        self.reached = 0;
    }

    /// The part of a socket's next output that was not shown before.
    pub fn take<'a>(&mut self, data: &'a str, offset: Option<u64>) -> &'a str {
        let offset = offset.unwrap_or(self.reached);
        self.reached = offset.saturating_add(data.len() as u64);
        let known = usize::try_from(self.shown.saturating_sub(offset)).unwrap_or(usize::MAX);
        let fresh = data.get(known..).unwrap_or_default();
        self.shown = self.shown.max(self.reached);
        fresh
    }

    /// The service did not keep so many bytes, which follow on this socket. Returns how many of them were not shown before.
    pub fn left_out(&mut self, bytes: u64) -> u64 {
        self.reached = self.reached.saturating_add(bytes);
        let missing = self.reached.saturating_sub(self.shown);
        self.shown = self.shown.max(self.reached);
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_socket_repeats_what_was_shown_and_nothing_new_is_lost() {
        let mut position = Position::default();
        assert_eq!(position.take("0123456789", Some(0)), "0123456789");

        position.begin_again();

        assert_eq!(position.take("01", Some(0)), "");
        assert_eq!(position.left_out(6), 0, "it was shown before");
        assert_eq!(position.take("89ab", Some(8)), "ab");
        assert_eq!(position.take("cd", Some(12)), "cd");
        assert_eq!(position.shown(), 14);
    }

    #[test]
    fn only_what_was_never_shown_is_missing() {
        let mut position = Position::default();
        assert_eq!(position.take("0123", Some(0)), "0123");

        position.begin_again();

        assert_eq!(position.take("01", Some(0)), "");
        assert_eq!(position.left_out(10), 8);
        assert_eq!(position.take("cd", Some(12)), "cd");
        // The same part, after another loss.
        position.begin_again();
        assert_eq!(position.take("01", Some(0)), "");
        assert_eq!(position.left_out(10), 0);
        assert_eq!(position.take("cde", Some(12)), "e");
    }

    #[test]
    fn characters_stay_whole_and_an_output_without_an_offset_follows_the_last_one() {
        let mut position = Position::default();

        assert_eq!(position.take("a€", None), "a€");
        assert_eq!(position.take("b", None), "b");
        position.begin_again();
        assert_eq!(position.take("a€", Some(0)), "");
        assert_eq!(position.take("bc", Some(4)), "c");
    }
}
