//! What a view shows, as it is saved: every known field is checked, because the interface trusts it when it is opened later.
//! What is not known is not saved.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde_json::json;

use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{At, FILLED_LINE, Number, Reference, Tag, described, line, string, text_field};
use crate::http::metrics::combined::{MAX_NAMES, MAX_SERVER_IDS};
use crate::metrics::combined::{Function, GroupBy, Rank};

/// The only version. A view of another one is of a newer service.
pub type Version = Number<1, 1>;

/// A range up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRange(&'static str);

/// The ranges of the interface.
const RANGES: [&str; 9] = ["5m", "15m", "1h", "6h", "24h", "7d", "30d", "90d", "1y"];

const DEFAULT_RANGE: &str = "24h";

const DEFAULT_TOP: u64 = 10;

impl LastRange {
    pub fn word(self) -> &'static str {
        self.0
    }
}

impl Deserr<Faults> for LastRange {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let given = string(value, location)?;
        let found = RANGES.into_iter().find(|known| *known == given);
        found.map(Self).ok_or_else(|| not_a_member(&RANGES, location))
    }
}

described!(LastRange, json!({ "type": "string", "enum": RANGES, "example": DEFAULT_RANGE }));

text_field!(
    /// The name of a series. Names are separated by commas in addresses, so it has none.
    SeriesName(String),
    |text, location| {
        let text = line(text, 1, 200, location)?;
        let msg = "ensure this value has no comma";
        if text.contains(',') { Err(Faults::at(location, "value_error.series", msg)) } else { Ok(text) }
    },
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": FILLED_LINE, "example": "cpu_percent" })
);

/// What a view shows.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = is_sound -> Faults)]
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
    /// The range up to now. Defaults to `24h`.
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

fn is_sound(definition: DefinitionIn, location: ValuePointerRef<'_>) -> Result<DefinitionIn, Faults> {
    let mut faults = Faults::default();
    let mut add = |field: &str, kind: &str, msg: &str| {
        faults.0.extend(Faults::at(location.push_key(field), kind, msg).0);
    };
    match definition.series.len() {
        0 => add("series", "value_error.list.min_items", "ensure this value has at least 1 items"),
        count if count > MAX_NAMES => {
            add("series", "value_error.list.max_items", &format!("ensure this value has at most {MAX_NAMES} items"));
        }
        _ => {}
    }
    if definition.servers.as_ref().is_some_and(|ids| ids.len() > MAX_SERVER_IDS) {
        add("servers", "value_error.list.max_items", &format!("ensure this value has at most {MAX_SERVER_IDS} items"));
    }
    match (definition.start, definition.end) {
        (Some(At(start)), Some(At(end))) if end <= start => {
            add("end", "value_error.range", "ensure that end is after start");
        }
        (Some(_), Some(_)) if definition.range.is_some() => {
            add("range", "value_error.range", "ensure that there is either a range or start and end");
        }
        (Some(_), None) => add("end", "value_error.missing", "field required"),
        (None, Some(_)) => add("start", "value_error.missing", "field required"),
        (Some(_), Some(_)) | (None, None) => {}
    }
    if faults.0.is_empty() { Ok(definition) } else { Err(faults) }
}

impl DefinitionIn {
    /// The form in which it is saved and returned, with all fields.
    pub fn text(self) -> String {
        let (start, end) = (self.start.map(|At(start)| start), self.end.map(|At(end)| end));
        let usual = start.is_none().then_some(DEFAULT_RANGE);
        json!({
            "version": self.version.0,
            "series": self.series.into_iter().map(|SeriesName(name)| name).collect::<Vec<_>>(),
            "servers": self.servers.unwrap_or_default().into_iter().map(|Reference(id)| id).collect::<Vec<_>>(),
            "tag": self.tag.map(|Tag(tag)| tag),
            "function": self.function.unwrap_or(Function::Avg).word(),
            "by": self.by.unwrap_or(GroupBy::Server).word(),
            "top": self.top.map_or(DEFAULT_TOP, |Number(top)| top),
            "rank": self.rank.unwrap_or(Rank::Max).word(),
            "range": self.range.map(LastRange::word).or(usual),
            "start": start,
            "end": end,
            "events": self.events.unwrap_or(true),
        })
        .to_string()
    }
}
