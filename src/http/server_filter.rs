//! Which servers: the parameters of the list, and of what else filters servers.

use deserr::Deserr;
use paperclip::actix::Apiv2Schema;
use serde_json::json;

use super::extract::fault::{Faults, not_a_member};
use super::extract::field::{described, string};
use super::extract::param::{MAX_OFFSET, SearchText, Whole};
use super::people_out::OwnRoleParam;
use crate::store::{ServerFilter, StatusFilter};

/// The status to filter by.
#[derive(Debug, Clone, Copy)]
pub struct StatusParam(StatusFilter);

const STATUSES: [&str; 3] = ["pending", "online", "offline"];

impl Deserr<Faults> for StatusParam {
    fn deserialize_from_value<V: deserr::IntoValue>(
        value: deserr::Value<V>,
        location: deserr::ValuePointerRef<'_>,
    ) -> Result<Self, Faults> {
        match string(value, location)?.as_str() {
            "pending" => Ok(Self(StatusFilter::Pending)),
            "online" => Ok(Self(StatusFilter::Online)),
            "offline" => Ok(Self(StatusFilter::Offline)),
            _ => Err(not_a_member(&STATUSES, location)),
        }
    }
}

described!(StatusParam, json!({ "type": "string", "enum": STATUSES }));

/// Which servers, and which page of them.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ServersQuery {
    #[deserr(default)]
    pub status: Option<StatusParam>,
    /// Only servers with this tag.
    #[deserr(default)]
    pub tag: Option<SearchText>,
    /// With `owner`, only your own servers.
    #[deserr(default)]
    pub role: Option<OwnRoleParam>,
    /// Only servers with this text in their name, host or description.
    #[deserr(default)]
    pub q: Option<SearchText>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    pub limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    pub offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// The filter that three parameters select.
pub fn filter(status: Option<StatusParam>, tag: Option<SearchText>, q: Option<SearchText>) -> ServerFilter {
    ServerFilter {
        status: status.map(|StatusParam(status)| status),
        tag: tag.map(|SearchText(tag)| tag),
        text: q.map(|SearchText(text)| text).filter(|text| !text.is_empty()),
        ..ServerFilter::default()
    }
}
