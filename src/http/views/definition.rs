//! What a view shows, as it is saved: every known field is checked, because the interface trusts it when it is opened later.
//! What is not known is not saved.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde_json::json;

use crate::http::extract::cross_check::{CrossCheck, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{At, FILLED_LINE, Number, Reference, Tag, described, line, string, text_field};
use crate::http::metrics::combined::{MAX_NAMES, MAX_SERVER_IDS};
use crate::metrics::combined::{Function, GroupBy, Rank};

/// The only version. A view of another one is of a newer service.
pub type Version = Number<1, 1>;

const DEFAULT_RANGE: &str = "24h";

/// The letters of ranges and their seconds.
const RANGE_UNITS: [(char, u64); 6] =
    [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 7 * 86_400), ('y', 365 * 86_400)];

/// The digits of a range and its letter.
const RANGE_PATTERN: &str = "^[1-9][0-9]{0,8}[smhdwy]$";

/// The seconds of the shortest and longest ranges that the interface shows: samples are a second apart at least.
const SHORTEST_RANGE: u64 = 10;
const LONGEST_RANGE: u64 = 5 * 365 * 86_400;

const DEFAULT_TOP: u64 = 10;

text_field!(
    /// A range up to now: one of those that the interface offers, or one that somebody typed.
    LastRange(String),
    |text, location| {
        let msg = "ensure this value is a number and one of s, m, h, d, w, y, from 10s to 5y";
        if is_range(&text) { Ok(text) } else { Err(Faults::at(location, "value_error.range", msg)) }
    },
    json!({ "type": "string", "pattern": RANGE_PATTERN, "example": DEFAULT_RANGE })
);

fn is_range(text: &str) -> bool {
    let parts = RANGE_UNITS.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    parts.is_some_and(|(count, seconds)| {
        let is_number = count.len() <= 9 && !count.starts_with('0') && count.bytes().all(|byte| byte.is_ascii_digit());
        let length = count.parse::<u64>().map_or(0, |count| count.saturating_mul(seconds));
        is_number && (SHORTEST_RANGE..=LONGEST_RANGE).contains(&length)
    })
}

text_field!(
    /// The name of a series. Only its target, after the colon, may have commas.
    SeriesName(String),
    |text, location| {
        let text = line(text, 1, 200, location)?;
        let msg = "ensure this value has no comma before its colon";
        let base = text.split_once(':').map_or(text.as_str(), |(base, _)| base);
        if base.contains(',') { Err(Faults::at(location, "value_error.series", msg)) } else { Ok(text) }
    },
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": FILLED_LINE, "example": "cpu_percent" })
);

/// What a view shows.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DefinitionIn {
    version: Version,
    /// The series, at most 8. `container_cpu:*` stands for every target of a series.
    series: Vec<SeriesName>,
    /// Only these servers, at most 100. Defaults to all.
    #[deserr(default)]
    servers: Option<Vec<Reference>>,
    /// Only servers with this tag.
    #[deserr(default)]
    tag: Option<Tag>,
    /// How the values of a line become one. Defaults to `avg`.
    #[deserr(default)]
    function: Option<Function>,
    /// What a line stands for. Defaults to `server`.
    #[deserr(default)]
    by: Option<GroupBy>,
    /// Maximum number of lines of each series. Defaults to 10.
    #[deserr(default)]
    top: Option<Number<1, 100>>,
    /// By which of its values a line ranks. Defaults to `max`.
    #[deserr(default)]
    rank: Option<Rank>,
    /// The range up to now: a number and one of `s`, `m`, `h`, `d`, `w` and `y`, from `10s` to `5y`. Defaults to `24h`.
    #[deserr(default)]
    range: Option<LastRange>,
    /// The start of a fixed range.
    #[deserr(default)]
    start: Option<At>,
    /// The end of a fixed range.
    #[deserr(default)]
    end: Option<At>,
    /// Whether events are marked. Defaults to true.
    #[deserr(default)]
    events: Option<bool>,
}

impl CrossCheck for DefinitionIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = Faults::default();
        let mut add = |field: &str, kind: &str, msg: &str| {
            faults.0.extend(Faults::at(fields.location.push_key(field), kind, msg).0);
        };
        match fields.sound::<Vec<SeriesName>>("series").map(|names| names.len()) {
            Some(0) => add("series", "value_error.list.min_items", "ensure this value has at least 1 items"),
            Some(count) if count > MAX_NAMES => {
                add(
                    "series",
                    "value_error.list.max_items",
                    &format!("ensure this value has at most {MAX_NAMES} items"),
                );
            }
            Some(_) | None => {}
        }
        if fields.sound::<Vec<Reference>>("servers").is_some_and(|ids| ids.len() > MAX_SERVER_IDS) {
            let msg = format!("ensure this value has at most {MAX_SERVER_IDS} items");
            add("servers", "value_error.list.max_items", &msg);
        }
        let range = fields.sound("start").zip(fields.sound("end"));
        if range.is_some_and(|(At(start), At(end))| end <= start) {
            add("end", "value_error.range", "ensure that end is after start");
        }
        match (fields.is_given("start"), fields.is_given("end")) {
            (true, true) if fields.is_given("range") => {
                add("range", "value_error.range", "ensure that there is either a range or start and end");
            }
            (true, false) => add("end", "value_error.missing", "field required"),
            (false, true) => add("start", "value_error.missing", "field required"),
            (true, true) | (false, false) => {}
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

impl DefinitionIn {
    /// The form in which it is saved and returned, with all fields.
    pub fn text(self) -> String {
        let (start, end) = (self.start.map(|At(start)| start), self.end.map(|At(end)| end));
        let usual = start.is_none().then(|| DEFAULT_RANGE.to_owned());
        json!({
            "version": self.version.0,
            "series": self.series.into_iter().map(|SeriesName(name)| name).collect::<Vec<_>>(),
            "servers": self.servers.unwrap_or_default().into_iter().map(|Reference(id)| id).collect::<Vec<_>>(),
            "tag": self.tag.map(|Tag(tag)| tag),
            "function": self.function.unwrap_or(Function::Avg).word(),
            "by": self.by.unwrap_or(GroupBy::Server).word(),
            "top": self.top.map_or(DEFAULT_TOP, |Number(top)| top),
            "rank": self.rank.unwrap_or(Rank::Max).word(),
            "range": self.range.map(|LastRange(range)| range).or(usual),
            "start": start,
            "end": end,
            "events": self.events.unwrap_or(true),
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_number_and_a_unit_within_bounds() {
        for range in ["5m", "15m", "1h", "6h", "24h", "7d", "30d", "90d", "1y", "10s", "2d", "3w", "157680000s", "5y"] {
            assert!(is_range(range), "{range}");
        }
        for range in ["", "d", "2", "2 d", "2x", "-2d", "+2d", "2.5d", "02d", "0d", "9s", "6y", "157680001s"] {
            assert!(!is_range(range), "{range}");
        }
    }
}
