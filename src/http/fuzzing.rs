//! Entry points for fuzzers, and the test that replays their findings: queries and bodies are parsed, or refused with
//! their faults.

use deserr::Deserr;

use super::extract::cross_check::CrossChecked;
use super::extract::fault::Faults;
use super::extract::{Body, Form, Json, parse_query};
use super::{
    alerts, api_keys, audit, auth, commands, docker, logs, metrics, notifications, server_events, server_filter,
    servers, views,
};

/// One parser, selected by the first byte.
type Parse = fn(&[u8]);

const PARSERS: &[Parse] = &[
    query::<CrossChecked<metrics::history::HistoryQuery>>,
    query::<CrossChecked<metrics::series::SeriesQuery>>,
    query::<CrossChecked<metrics::fleet::FleetQuery>>,
    query::<server_filter::ServersQuery>,
    query::<CrossChecked<alerts::AlertsQuery>>,
    query::<CrossChecked<audit::AuditQuery>>,
    query::<CrossChecked<docker::LogsQuery>>,
    query::<CrossChecked<logs::WatchQuery>>,
    body::<Json<CrossChecked<auth::RegisterIn>>>,
    body::<Form<auth::LoginIn>>,
    body::<Json<servers::ServerIn>>,
    body::<Json<servers::ServerPatchIn>>,
    body::<Json<alerts::threshold_in::ThresholdIn>>,
    body::<Json<alerts::threshold_in::ThresholdPatchIn>>,
    body::<Json<alerts::silence_in::SilenceIn>>,
    body::<Json<api_keys::ApiKeyIn>>,
    body::<Json<commands::CommandIn>>,
    body::<Json<commands::batches::BatchIn>>,
    // New parsers come last: stored findings select their parser by its number.
    body::<Json<alerts::silence_in::SilencePatchIn>>,
    body::<Json<notifications::fields::NewChannelIn>>,
    body::<Json<notifications::fields::PatchIn>>,
    body::<Json<auth::ProfilePatch>>,
    body::<Json<auth::PasswordChange>>,
    body::<Json<auth::RefreshIn>>,
    query::<CrossChecked<metrics::names::NamesQuery>>,
    query::<metrics::ProcessesQuery>,
    query::<CrossChecked<server_events::ServerEventsQuery>>,
    query::<CrossChecked<server_events::AvailabilityQuery>>,
    query::<notifications::deliveries::DeliveriesQuery>,
    query::<alerts::thresholds::ThresholdsQuery>,
    query::<alerts::silences::SilencesQuery>,
    query::<docker::StopQuery>,
    query::<CrossChecked<metrics::combined::CombinedQuery>>,
    query::<metrics::names::PresentNamesQuery>,
    body::<Json<views::ViewIn>>,
    body::<Json<views::ViewPatchIn>>,
    body::<Json<views::dashboards::DashboardIn>>,
    body::<Json<views::dashboards::DashboardPatchIn>>,
    query::<CrossChecked<metrics::heat::HeatQuery>>,
];

/// Parses a query string or a body of one of the resources.
pub fn request(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    if let Some(parse) = PARSERS.get(usize::from(*which) % PARSERS.len()) {
        parse(rest);
    }
}

fn query<T: Deserr<Faults>>(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    refused(parse_query::<T>(text).err());
}

fn body<B: Body>(data: &[u8]) {
    refused(B::parse(data).err());
}

/// Every refusal has a reason.
fn refused(faults: Option<Faults>) {
    assert!(faults.is_none_or(|faults| !faults.0.is_empty()), "refused without a fault");
}
