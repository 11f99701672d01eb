//! Inputs whose fields must also fit together: those that are valid are compared although others have faults, so that one answer
//! names all.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema;
use serde_json::Map;

use super::fault::Faults;

/// An input whose fields must fit together. Requests take it as [`CrossChecked`], which alone runs the check.
pub trait CrossCheck: Deserr<Faults> {
    /// Checks what concerns several fields, as far as they are valid. The faults of a single field are reported beside its own.
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults>;
}

/// The fields of an input, as they were sent.
pub struct Fields<'a> {
    sent: &'a Map<String, serde_json::Value>,
    /// Where the input is.
    pub location: ValuePointerRef<'a>,
}

impl Fields<'_> {
    /// The field, if it is valid. As an `Option` it may also be missing.
    pub fn sound<T: Deserr<Faults>>(&self, name: &str) -> Option<T> {
        let value = self.sent.get(name).cloned().unwrap_or_default();
        deserr::deserialize::<T, _, Faults>(value).ok()
    }

    /// Whether the field is there, valid or not.
    pub fn is_given(&self, name: &str) -> bool {
        self.sent.get(name).is_some_and(|value| !value.is_null())
    }
}

/// A checked input.
#[derive(Debug, Clone)]
pub struct CrossChecked<T>(pub T);

impl<T: CrossCheck> Deserr<Faults> for CrossChecked<T> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let json = serde_json::Value::from(value);
        let crossed = json.as_object().map_or(Ok(()), |sent| T::cross_check(&Fields { sent, location }));
        let input = T::deserialize_from_value(json.into_value(), location);
        match (input, crossed) {
            (Ok(input), Ok(())) => Ok(Self(input)),
            (Ok(_), Err(faults)) | (Err(faults), Ok(())) => Err(faults),
            (Err(mut faults), Err(crossed)) => {
                faults.0.extend(crossed.0);
                Err(faults)
            }
        }
    }
}

/// It is documented as the input.
impl<T: Apiv2Schema> Apiv2Schema for CrossChecked<T> {
    fn name() -> Option<String> {
        T::name()
    }

    fn description() -> &'static str {
        T::description()
    }

    fn required() -> bool {
        T::required()
    }

    fn raw_schema() -> DefaultSchemaRaw {
        T::raw_schema()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::docker::ActionIn;
    use crate::http::enrolments::EnrolmentIn;
    use crate::http::extract::fault::{Fault, Loc};
    use crate::http::extract::parse_query;
    use crate::http::grants::GrantIn;
    use crate::http::invitations::InvitationIn;
    use crate::http::program_tokens::TokenIn;
    use crate::http::views::ViewIn;
    use crate::http::views::dashboards::DashboardIn;
    use crate::http::{alerts, audit, docker, logs, metrics, server_events};

    const START_AND_END: &str = "start=2026-11-20T10:00:00Z&end=2026-11-20T09:00:00Z";
    const SINCE_AND_UNTIL: &str = "since=2026-11-20T10:00:00Z&until=2026-11-20T09:00:00Z";

    /// The places and types of faults, sorted.
    fn shown(faults: &Faults) -> Vec<String> {
        let part = |loc: &Loc| match loc {
            Loc::Name(name) => name.clone(),
            Loc::Index(index) => index.to_string(),
        };
        let fault = |fault: &Fault| {
            let place: Vec<String> = fault.loc.iter().map(part).collect();
            format!("{} {}", place.join("."), fault.r#type)
        };
        let mut all: Vec<String> = faults.0.iter().map(fault).collect();
        all.sort_unstable();
        all
    }

    fn query<T: Deserr<Faults>>(text: &str) -> Vec<String> {
        shown(&parse_query::<T>(text).err().unwrap_or_default())
    }

    fn body<T: Deserr<Faults>>(json: serde_json::Value) -> Vec<String> {
        shown(&deserr::deserialize::<T, _, Faults>(json).err().unwrap_or_default())
    }

    #[test]
    fn a_reversed_range_is_a_fault_beside_those_of_other_parameters() {
        type Query = fn(&str) -> Vec<String>;
        let from_start: [(Query, &str, &str); 7] = [
            (query::<CrossChecked<metrics::history::HistoryQuery>>, "max_points=0", "max_points"),
            (query::<CrossChecked<metrics::series::SeriesQuery>>, "max_points=0", "max_points"),
            (query::<CrossChecked<metrics::names::NamesQuery>>, "limit=0", "limit"),
            (query::<CrossChecked<metrics::fleet::FleetQuery>>, "limit=0", "limit"),
            (query::<CrossChecked<metrics::heat::HeatQuery>>, "buckets=0", "buckets"),
            (query::<CrossChecked<metrics::combined::CombinedQuery>>, "top=0", "top"),
            (query::<CrossChecked<server_events::ServerEventsQuery>>, "limit=0", "limit"),
        ];
        for (faults, other, field) in from_start {
            let mut expected = [format!("{field} value_error.number.not_ge"), "end value_error.range".to_owned()];
            expected.sort_unstable();
            assert_eq!(faults(&format!("{START_AND_END}&{other}")), expected, "{other}");
            assert_eq!(faults(START_AND_END), ["end value_error.range"], "{other}");
        }

        let since: [Query; 4] = [
            query::<CrossChecked<audit::AuditQuery>>,
            query::<CrossChecked<alerts::AlertsQuery>>,
            query::<CrossChecked<logs::LogsQuery>>,
            query::<CrossChecked<docker::LogsQuery>>,
        ];
        for (faults, other) in since.into_iter().zip(["limit", "limit", "tail", "tail"]) {
            let expected = [format!("{other} type_error.integer"), "until value_error.range".to_owned()];
            assert_eq!(faults(&format!("{SINCE_AND_UNTIL}&{other}=x")), expected);
        }
    }

    #[test]
    fn checks_of_queries_leave_out_what_is_faulty() {
        let fleet = query::<CrossChecked<metrics::fleet::FleetQuery>>;
        assert_eq!(
            fleet("limit=500&max_points=251&offset=x"),
            ["max_points value_error.number.not_le", "offset type_error.integer"]
        );
        assert_eq!(fleet("limit=x&max_points=500"), ["limit type_error.integer"]);
        let heat = query::<CrossChecked<metrics::heat::HeatQuery>>;
        assert_eq!(heat("servers=1&buckets=x"), ["buckets type_error.integer", "servers type_error.uuid"]);
        assert_eq!(heat("limit=x&buckets=2000"), ["limit type_error.integer"]);
        let streams = query::<CrossChecked<docker::LogsQuery>>;
        assert_eq!(streams("stdout=0&stderr=0&tail=x"), ["stderr value_error.streams", "tail type_error.integer"]);
        assert_eq!(streams("stdout=0&stderr=x"), ["stderr type_error.bool"]);
        for log in [query::<CrossChecked<logs::LogsQuery>>, query::<CrossChecked<logs::WatchQuery>>] {
            assert_eq!(log("source=file&tail=x"), ["path value_error.missing", "tail type_error.integer"]);
            assert_eq!(log("source=container&container_id=a/b"), ["container_id value_error.str.regex"]);
            assert_eq!(log("source=mail&tail=x"), ["source type_error.enum", "tail type_error.integer"]);
        }
    }

    #[test]
    fn checks_of_bodies_count_a_faulty_field_as_given() {
        let grant = |subject: serde_json::Value, scope: serde_json::Value| {
            body::<CrossChecked<GrantIn>>(
                json!({ "subject": subject, "scope": scope, "role": "viewer", "rights": ["logs"] }),
            )
        };
        assert_eq!(
            grant(json!({ "username": "a", "team_id": 7 }), json!({ "tag": "", "server_id": 7 })),
            [
                "rights value_error.rights",
                "scope value_error.reach",
                "scope.server_id type_error.uuid",
                "scope.tag value_error.any_str.min_length",
                "subject value_error.subject",
                "subject.team_id type_error.uuid",
                "subject.username value_error.any_str.min_length",
            ]
        );
        assert_eq!(
            grant(json!({ "user_id": 7 }), json!({ "all": 1, "tag": "db" })),
            ["rights value_error.rights", "scope.all type_error.bool", "subject.user_id type_error.uuid",]
        );

        let networks = vec!["10.0.0.1"; 21];
        let token = json!({ "name": "", "scope": {}, "rights": ["logs"], "networks": networks });
        assert_eq!(
            body::<CrossChecked<TokenIn>>(token),
            [
                "name value_error.any_str.min_length",
                "networks value_error.list.max_items",
                "rights value_error.rights",
                "scope value_error.reach",
            ]
        );
        let given = json!({ "subject": {}, "role": "viewer", "rights": ["logs"] });
        let enrolment = json!({ "name": "x", "uses": 0, "grants": [given], "networks": networks });
        assert_eq!(
            body::<CrossChecked<EnrolmentIn>>(enrolment),
            [
                "grants.0.rights value_error.rights",
                "grants.0.subject value_error.subject",
                "networks value_error.list.max_items",
                "uses value_error.number.not_ge",
            ]
        );
        let granted = json!({ "scope": { "all": true }, "role": "viewer" });
        let invitation = json!({ "email": "plain", "grants": vec![granted; 51] });
        assert_eq!(
            body::<CrossChecked<InvitationIn>>(invitation),
            ["email value_error.email", "grants value_error.list.max_items"]
        );
        let signature = json!({ "type": "webauthn", "signature": "", "client_data_json": "{}" });
        assert_eq!(
            body::<ActionIn>(json!({ "signed": { "payload": "e30=", "signatures": [signature] } })),
            [
                "signed.signatures.0 value_error.signature",
                "signed.signatures.0.signature value_error.any_str.min_length",
            ]
        );
    }

    #[test]
    fn checks_of_saved_charts_run_beside_other_faults() {
        let definition = json!({
            "version": 2, "series": [],
            "start": "2026-11-20T10:00:00Z", "end": "2026-11-20T09:00:00Z", "range": "1h",
        });
        assert_eq!(
            body::<ViewIn>(json!({ "name": "x", "definition": definition })),
            [
                "definition.end value_error.range",
                "definition.range value_error.range",
                "definition.series value_error.list.min_items",
                "definition.version value_error.number.not_le",
            ]
        );
        let half = json!({ "version": 1, "series": ["a"], "start": "soon" });
        assert_eq!(
            body::<ViewIn>(json!({ "name": "x", "definition": half })),
            ["definition.end value_error.missing", "definition.start value_error.datetime",]
        );
        let panels = vec![json!({ "view_id": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10" }); 51];
        let layout = json!({ "version": 2, "panels": panels });
        assert_eq!(
            body::<DashboardIn>(json!({ "name": "x", "layout": layout })),
            ["layout.panels value_error.list.max_items", "layout.version value_error.number.not_le",]
        );
    }

    #[test]
    fn what_is_no_object_has_one_fault() {
        assert_eq!(body::<CrossChecked<GrantIn>>(json!([])), [" type_error.dict"]);
    }
}
