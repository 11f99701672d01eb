//! Which lines are new after a lost connection. The next one sends the last lines of the log again, from before or after the first
//! that was shown. A line without a time is known only by its text and the lines before it, and texts recur. So all lines wait until it
//! is clear where those that were shown end. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use signalbox_protocol::Timestamp;

use crate::api::types::LogLine;

/// After a lost connection as many lines are asked for again, and as many that were shown are kept to compare them with.
const AGAIN: u32 = 1000;
/// The line that was shown last has come. If it recurs, it may come once more: lines wait until nothing has come for so long.
const QUIET: Duration = Duration::from_secs(1);
/// No line waits for longer, also in a log that is never quiet, or where nothing that was shown comes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The newest lines that were shown, and those that came after a lost connection.
#[derive(Debug, Default)]
pub struct Recent {
    shown: VecDeque<LogLine>,
    /// Lines are missing after the last of them.
    has_gap: bool,
    /// Set until it is clear which lines are new.
    replay: Option<Replay>,
}

/// The first lines of a new connection.
#[derive(Debug, Default)]
struct Replay {
    lines: Vec<LogLine>,
    /// When the first and the last of them came.
    first: Duration,
    last: Duration,
    /// How many come up to the line that was shown last, with it; 0 as long as that has not come.
    known: usize,
    /// How many of these are the same as the last ones that were shown.
    matching: usize,
    /// The latest time of what was shown.
    newest: Option<Timestamp>,
}

/// Lines to show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Some may be missing before them.
    pub follows_gap: bool,
    pub lines: Vec<LogLine>,
}

impl Recent {
    /// How many lines to ask for; at first `wanted`. Until a line was shown nothing would tell which of more lines are new.
    pub fn tail(&self, wanted: u32) -> u32 {
        if self.shown.is_empty() { wanted } else { AGAIN }
    }

    /// A new connection begins. What the last one brought and was held back comes again, too.
    pub fn begin_again(&mut self) {
        let newest = self.shown.iter().filter_map(|line| line.timestamp).max();
        self.replay = (!self.shown.is_empty()).then(|| Replay { newest, ..Replay::default() });
    }

    /// Takes a line that came at `now`. Returns what can be shown now.
    pub fn take(&mut self, line: LogLine, now: Duration) -> Fresh {
        let Some(replay) = &mut self.replay else {
            self.remember(&line);
            return Fresh { follows_gap: false, lines: vec![line] };
        };
        // This line is new, so those that were shown have come.
        let is_later = replay.newest.is_some() && line.timestamp > replay.newest;
        replay.push(line, &self.shown, now);
        if is_later || replay.lines.len() >= AGAIN as usize { self.release() } else { Fresh::default() }
    }

    /// When to release what is held back.
    pub fn due(&self) -> Option<Duration> {
        let replay = self.replay.as_ref().filter(|replay| !replay.lines.is_empty())?;
        let latest = replay.first + LONGEST_WAIT;
        Some(if replay.known > 0 { latest.min(replay.last + QUIET) } else { latest })
    }

    /// Decides by what has come. Returns what is new of the lines that were held back.
    pub fn release(&mut self) -> Fresh {
        // The agent may be away: as long as nothing has come, the last lines are still to come.
        let Some(mut replay) = self.replay.take_if(|replay| !replay.lines.is_empty()) else { return Fresh::default() };
        self.has_gap = replay.known == 0;
        let old = if self.has_gap { replay.older_than(self.last_time()) } else { replay.known };
        let lines = replay.lines.split_off(old);
        lines.iter().for_each(|line| self.remember(line));
        Fresh { follows_gap: old == 0, lines }
    }

    /// Lines are missing after those that came. Returns what is new of the lines that were held back.
    pub fn interrupt(&mut self) -> Fresh {
        let fresh = self.release();
        self.has_gap = true;
        fresh
    }

    fn remember(&mut self, line: &LogLine) {
        // What comes again has no gap, so what was shown before one does not stand before what was shown after it.
        if std::mem::take(&mut self.has_gap) {
            self.shown.clear();
        }
        if self.shown.len() >= AGAIN as usize {
            self.shown.pop_front();
        }
        self.shown.push_back(line.clone());
    }

    fn last_time(&self) -> Option<Timestamp> {
        self.shown.iter().rev().find_map(|line| line.timestamp)
    }
}

impl Replay {
    fn push(&mut self, line: LogLine, shown: &VecDeque<LogLine>, now: Duration) {
        if self.lines.is_empty() {
            self.first = now;
        }
        self.last = now;
        self.lines.push(line);
        let pairs = self.lines.iter().rev().zip(shown.iter().rev());
        let matching = pairs.take_while(|(came, shown)| came == shown).count();
        // What was shown ends here only if all lines are the same, back to where one of both begins. Of several such places the one
        // with the most lines counts, and of these the last: lines that recur are old ones rather than new ones.
        if matching == self.lines.len().min(shown.len()) && matching >= self.matching {
            self.matching = matching;
            self.known = self.lines.len();
        }
    }

    /// How many lines are older than the time of the last one that was shown. That one may never come: a machine that crashed may have
    /// lost the end of its logs.
    fn older_than(&self, last: Option<Timestamp>) -> usize {
        let is_older = |line: &LogLine| line.timestamp.is_some() && line.timestamp < last;
        self.lines.iter().rposition(is_older).map_or(0, |place| place + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> LogLine {
        LogLine { timestamp: None, stream: None, message: message.to_owned() }
    }

    fn at(seconds: i64, message: &str) -> LogLine {
        LogLine { timestamp: Some(Timestamp::from_millis(seconds * 1000)), ..line(message) }
    }

    /// A line for each letter.
    fn lines(letters: &str) -> Vec<LogLine> {
        letters.chars().map(|letter| line(&letter.to_string())).collect()
    }

    /// Has shown these lines when the connection was lost.
    fn lost_after(lines: Vec<LogLine>) -> Recent {
        let mut recent = Recent::default();
        for line in lines {
            assert_eq!(recent.take(line.clone(), Duration::ZERO), Fresh { follows_gap: false, lines: vec![line] });
        }
        recent.begin_again();
        recent
    }

    /// What is shown of lines after which nothing comes, and whether some may be missing before them.
    fn shown(recent: &mut Recent, lines: Vec<LogLine>) -> (bool, Vec<String>) {
        let mut all: Vec<Fresh> = lines.into_iter().map(|line| recent.take(line, Duration::ZERO)).collect();
        all.push(recent.release());
        let follows_gap = all.iter().any(|fresh| fresh.follows_gap);
        (follows_gap, all.into_iter().flat_map(|fresh| fresh.lines).map(|line| line.message).collect())
    }

    /// The same, with a letter for each line.
    fn letters(recent: &mut Recent, coming: &str) -> (bool, String) {
        let (follows_gap, messages) = shown(recent, lines(coming));
        (follows_gap, messages.concat())
    }

    #[test]
    fn lines_that_come_again_are_shown_once() {
        let mut recent = lost_after(vec![at(1, "a"), at(2, "b"), at(2, "b"), at(3, "c")]);
        let again = [(0, "older"), (1, "a"), (2, "b"), (2, "b"), (3, "c"), (3, "d"), (4, "a")];

        let fresh = shown(&mut recent, again.map(|(seconds, message)| at(seconds, message)).to_vec());

        assert_eq!(fresh, (false, vec!["d".to_owned(), "a".to_owned()]));
    }

    #[test]
    fn more_lines_are_asked_for_again_once_one_was_shown() {
        assert_eq!(lost_after(Vec::new()).tail(0), 0);
        assert_eq!(lost_after(lines("a")).tail(0), AGAIN);
    }

    #[test]
    fn a_line_with_a_later_time_is_shown_at_once() {
        let mut recent = lost_after(vec![at(1, "a")]);

        assert_eq!(recent.take(at(1, "a"), Duration::ZERO), Fresh::default());
        assert_eq!(recent.take(at(2, "b"), Duration::ZERO).lines, [at(2, "b")]);
        assert_eq!(recent.take(at(2, "c"), Duration::ZERO).lines, [at(2, "c")]);
    }

    #[test]
    fn lines_without_a_time_are_known_by_those_before_them() {
        for (before, coming, fresh) in [
            // It begins before what was shown, ...
            ("cde", "abcdefg", "fg"),
            // ... with it, or after it.
            ("abc", "abc", ""),
            ("abcde", "cdefg", "fg"),
            // The last line alone says nothing.
            ("abc", "cxcabcd", "d"),
        ] {
            assert_eq!(letters(&mut lost_after(lines(before)), coming), (false, fresh.to_owned()), "{before} {coming}");
        }
    }

    #[test]
    fn lines_that_recur_are_not_shown_again() {
        for (before, coming, fresh) in [("aa", "aaaaaaaa", ""), ("aba", "ababac", "c"), ("abab", "babc", "c")] {
            assert_eq!(letters(&mut lost_after(lines(before)), coming), (false, fresh.to_owned()), "{before} {coming}");
        }
    }

    #[test]
    fn where_nothing_is_known_lines_may_be_missing() {
        for coming in ["xyz", "xcy"] {
            assert_eq!(letters(&mut lost_after(lines("abc")), coming), (true, coming.to_owned()));
        }
        let mut recent = lost_after(vec![at(1, "a")]);
        assert_eq!(shown(&mut recent, vec![at(5, "b")]), (true, vec!["b".to_owned()]));
    }

    #[test]
    fn nothing_is_missing_where_the_log_lost_what_was_shown_last() {
        let mut recent = lost_after(vec![at(1, "a"), at(2, "b"), at(3, "c")]);

        let fresh = shown(&mut recent, vec![at(1, "a"), at(2, "b"), at(5, "d")]);

        assert_eq!(fresh, (false, vec!["d".to_owned()]));
    }

    #[test]
    fn lines_that_were_missing_come_again_between_those_that_were_shown() {
        let mut recent = lost_after(lines("abc"));
        assert_eq!(letters(&mut recent, "abc"), (false, String::new()));
        recent.interrupt();
        assert_eq!(letters(&mut recent, "ef"), (false, "ef".to_owned()));
        recent.begin_again();

        assert_eq!(letters(&mut recent, "abcdefg"), (false, "g".to_owned()));
    }

    #[test]
    fn an_agent_that_is_away_does_not_make_the_last_lines_new() {
        let mut recent = lost_after(lines("abc"));

        assert_eq!(recent.interrupt(), Fresh::default());

        assert_eq!(letters(&mut recent, "abcd"), (false, "d".to_owned()));
    }

    #[test]
    fn no_line_is_held_back_for_long() {
        let mut recent = lost_after(lines("b"));
        assert_eq!(recent.due(), None);

        let second = Duration::from_secs;
        assert_eq!(recent.take(line("a"), second(1)), Fresh::default());
        assert_eq!(recent.due(), Some(second(1) + LONGEST_WAIT));
        assert_eq!(recent.take(line("b"), second(2)), Fresh::default());
        assert_eq!(recent.due(), Some(second(2) + QUIET));
        assert_eq!(recent.take(line("c"), second(10)), Fresh::default());
        assert_eq!(recent.due(), Some(second(1) + LONGEST_WAIT));

        assert_eq!(recent.release().lines, [line("c")]);
        assert_eq!(recent.due(), None);
        assert_eq!(recent.take(line("d"), second(20)).lines, [line("d")]);
    }

    #[test]
    fn no_more_lines_are_held_back_than_come_again() {
        let mut recent = lost_after(lines("a"));
        let mut all: Vec<Fresh> =
            (1..=AGAIN).map(|number| recent.take(line(&number.to_string()), Duration::ZERO)).collect();
        let fresh = all.pop().unwrap();

        assert!(all.into_iter().all(|fresh| fresh == Fresh::default()));
        assert_eq!((fresh.follows_gap, fresh.lines.len()), (true, AGAIN as usize));
    }
}
