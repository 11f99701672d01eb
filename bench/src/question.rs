//! The queries of every store, as similar as each store allows.

use std::fmt;

use signalbox_protocol::Timestamp;

use crate::data::Dataset;

/// What is requested of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The mean of one series in steps of a minute, over a day.
    OneSeries,
    /// The maximum of ten series in steps of a minute, over a day.
    TenSeries,
    /// Every series at a thousand points, over a day.
    EverySeries,
    /// One series at a thousand points, over everything.
    OneSeriesOverAll,
    /// Every series at a thousand points, over everything.
    EverySeriesOverAll,
}

/// The state of the store before a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The same query ran a moment ago; a store that caches answers has to compute it again.
    Warm,
    /// As warm, and kept answers may be given.
    Kept,
    /// After a restart, with none of its files in the page cache.
    Cold,
    /// While samples come in.
    Fed,
}

/// One question.
#[derive(Debug, Clone)]
pub struct Question {
    pub kind: Kind,
    /// The number of the server.
    pub server: usize,
    pub start: Timestamp,
    pub end: Timestamp,
}

/// Requested points, where steps are not requested.
pub const POINTS: i64 = 1000;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

impl Kind {
    fn is_of_a_day(self) -> bool {
        match self {
            Self::OneSeries | Self::TenSeries | Self::EverySeries => true,
            Self::OneSeriesOverAll | Self::EverySeriesOverAll => false,
        }
    }
}

impl Question {
    /// The `turn`th query of a run over data that begins at `first`: servers in turns. Cold queries are for another day each
    /// time a server comes again, so that its blocks have not been read; the others are for the last day.
    pub fn of(kind: Kind, mode: Mode, turn: usize, data: &Dataset, first: Timestamp) -> Self {
        let server = turn % data.servers;
        if !kind.is_of_a_day() {
            return Self { kind, server, start: first, end: data.end() };
        }
        let earlier_hours = match mode {
            Mode::Cold => {
                let hours = (data.end().plus_millis(-DAY_MS).millis_since(first) / HOUR_MS).max(0);
                (turn / data.servers) as i64 * 24 % (hours + 1)
            }
            Mode::Warm | Mode::Kept | Mode::Fed => 0,
        };
        let end = data.end().plus_millis(-earlier_hours * HOUR_MS);
        Self { kind, server, start: end.plus_millis(-DAY_MS).max(first), end }
    }

    /// Seconds between two points where a thousand are wanted.
    pub fn step_seconds(&self) -> i64 {
        (self.end.millis_since(self.start) / 1000 / POINTS).max(1)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneSeries => "one series, a day, 1-minute means",
            Self::TenSeries => "ten series, a day, 1-minute maxima",
            Self::EverySeries => "every series, a day, 1,000 points",
            Self::OneSeriesOverAll => "one series, everything, 1,000 points",
            Self::EverySeriesOverAll => "every series, everything, 1,000 points",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warm => "warm",
            Self::Kept => "warm, kept answers allowed",
            Self::Cold => "cold",
            Self::Fed => "while samples come in",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_server_is_asked_for_another_day_each_time() {
        let end = Timestamp::from_millis(1_795_000_000_000);
        let data = Dataset::ending_at(end, 1, 2, 3.0, 5000);
        let asked = |mode, turn| Question::of(Kind::EverySeries, mode, turn, &data, data.first);

        let first = asked(Mode::Cold, 1);
        let second = asked(Mode::Cold, 3);

        assert_eq!((first.server, second.server), (1, 1));
        assert_eq!((first.end, second.end), (end, first.start));
        assert_eq!(asked(Mode::Warm, 3).end, end);
        // Half a day has no earlier day.
        let half = Dataset::ending_at(end, 1, 2, 0.5, 5000);
        let all = Question::of(Kind::EverySeries, Mode::Cold, 7, &half, half.first);
        assert_eq!((all.start, all.end), (half.first, end));
        assert_eq!(first.step_seconds(), 86);
    }
}
