//! Bodies: read up to a size limit, checked for their type, and parsed with all their faults.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use deserr::Deserr;
use futures_util::StreamExt;
use paperclip::actix::OperationModifier;
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw, MediaRange};
use paperclip::v2::schema::Apiv2Schema;
use tokio::time::{Instant, timeout_at};

use super::fault::{Faults, Part};
use super::text;
use crate::http::client_address::client_address;
use crate::http::error::ApiError;
use crate::shares::{Permit, Share};
use crate::state::State;

/// The largest accepted body.
pub const MAX_BODY: usize = 1024 * 1024;

/// How long a body may pause. It occupies memory during that time.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// A body that is slower than this, in bytes a second, uses up its time for pauses: 1 MiB has two minutes, and one byte now and then
/// has 20 seconds.
const MIN_RATE: u32 = 8 * 1024;

/// How long a large body waits for others to be read, apart from the time that it may take itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// The service reads a body up to this size from any client. The number of larger ones in memory is limited, and shared
/// fairly between addresses.
const SMALL_BODY: usize = 16 * 1024;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// The body that a handler expects.
pub trait Body: Sized {
    /// Its content type; `None` if the body is ignored.
    const CONTENT_TYPE: Option<&'static str>;

    /// Parses a body of this content type.
    fn parse(bytes: &[u8]) -> Result<Self, Faults>;

    /// The value of a missing body; `None` if the body is required.
    fn absent() -> Option<Self> {
        None
    }

    fn document(_: &mut DefaultOperationRaw) {}

    fn define(_: &mut BTreeMap<String, DefaultSchemaRaw>) {}
}

/// Any body or none: it is ignored.
#[derive(Debug, Clone, Copy)]
pub struct NoBody;

/// A JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// A JSON body that may be omitted.
#[derive(Debug)]
pub struct OptionalJson<T>(pub Option<T>);

/// A form, as browsers send it.
#[derive(Debug)]
pub struct Form<T>(pub T);

impl Body for NoBody {
    const CONTENT_TYPE: Option<&'static str> = None;

    fn parse(_: &[u8]) -> Result<Self, Faults> {
        Ok(Self)
    }
}

impl<T: Deserr<Faults> + Apiv2Schema> Body for Json<T> {
    const CONTENT_TYPE: Option<&'static str> = Some(JSON);

    fn parse(bytes: &[u8]) -> Result<Self, Faults> {
        let value: serde_json::Value = serde_json::from_slice(bytes)
            .map_err(|error| Faults::of(Part::Body, "value_error.jsondecode", format!("invalid JSON: {error}")))?;
        deserr::deserialize(value).map(Self).map_err(|faults: Faults| faults.within(Part::Body))
    }

    fn document(op: &mut DefaultOperationRaw) {
        <web::Json<T> as OperationModifier>::update_parameter(op);
    }

    fn define(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <web::Json<T> as OperationModifier>::update_definitions(map);
    }
}

impl<T: Deserr<Faults> + Apiv2Schema> Body for OptionalJson<T> {
    const CONTENT_TYPE: Option<&'static str> = Some(JSON);

    fn parse(bytes: &[u8]) -> Result<Self, Faults> {
        Json::<T>::parse(bytes).map(|Json(value)| Self(Some(value)))
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }

    fn document(op: &mut DefaultOperationRaw) {
        Json::<T>::document(op);
        for parameter in &mut op.parameters {
            if let paperclip::v2::models::Either::Right(parameter) = parameter
                && parameter.name == "body"
            {
                parameter.required = false;
            }
        }
    }

    fn define(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        Json::<T>::define(map);
    }
}

impl<T: Deserr<Faults> + Apiv2Schema> Body for Form<T> {
    const CONTENT_TYPE: Option<&'static str> = Some(FORM);

    fn parse(bytes: &[u8]) -> Result<Self, Faults> {
        text::form(bytes).map(Self).map_err(|faults: Faults| faults.within(Part::Body))
    }

    /// Documents it as JSON; a later step corrects that from the content type that the operation consumes.
    fn document(op: &mut DefaultOperationRaw) {
        Json::<T>::document(op);
        op.consumes = FORM.parse().ok().map(|mime| [MediaRange(mime)].into());
    }

    fn define(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        Json::<T>::define(map);
    }
}

/// Reads and parses the body. The outer error ends the request, the inner one joins the other faults.
pub async fn read<B: Body>(
    state: &State,
    request: &HttpRequest,
    payload: &mut Payload,
) -> Result<Result<B, Faults>, ApiError> {
    let Some(expected) = B::CONTENT_TYPE else { return Ok(B::parse(&[])) };
    let (bytes, _permit) = collect(state, request, payload).await?;
    let has_type = is_of_type(request, expected);
    // A form without fields is encoded as nothing.
    let is_empty_form = expected == FORM && has_type;
    if bytes.is_empty() && !is_empty_form {
        let missing = || Faults::of(Part::Body, "value_error.missing", "field required");
        return Ok(B::absent().ok_or_else(missing));
    }
    if !has_type {
        let msg = format!("the body must be {expected}");
        return Ok(Err(Faults::of_header("Content-Type", "value_error.content_type", msg)));
    }
    Ok(B::parse(&bytes))
}

/// The whole body, and its permit if it is a large one.
async fn collect(
    state: &State,
    request: &HttpRequest,
    payload: &mut Payload,
) -> Result<(BytesMut, Option<Permit>), ApiError> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if declared.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > MAX_BODY) {
        return Err(ApiError::too_large());
    }
    let (mut bytes, mut permit) = (BytesMut::new(), None);
    let mut pace = Pace::begin();
    while let Some(chunk) = pace.next_chunk(payload).await? {
        if bytes.len() + chunk.len() > MAX_BODY {
            return Err(ApiError::too_large());
        }
        if bytes.len() + chunk.len() > SMALL_BODY && permit.is_none() {
            let share = Share::of_written(&client_address(request, state));
            let since = Instant::now();
            permit = Some(state.limits.shares.bodies.enter_within(share, PATIENCE).await?);
            pace.deadline += since.elapsed();
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, permit))
}

/// Until when the next chunk of a body has to come.
struct Pace {
    deadline: Instant,
}

impl Pace {
    fn begin() -> Self {
        Self { deadline: Instant::now() + MAX_PAUSE }
    }

    /// The body's next chunk, if it comes in time.
    async fn next_chunk(&mut self, payload: &mut Payload) -> Result<Option<Bytes>, ApiError> {
        let fault = |msg: &str| ApiError::Invalid(Faults::of(Part::Body, "value_error", msg));
        let next = timeout_at(self.deadline, payload.next()).await.map_err(|_| fault("the body took too long"))?;
        let chunk = next.transpose().map_err(|_| fault("the body was cut off"))?;
        let length = chunk.as_ref().map_or(0, |chunk| u32::try_from(chunk.len()).unwrap_or(u32::MAX));
        let earned = Duration::from_secs(1) * length / MIN_RATE;
        self.deadline = (self.deadline + earned).min(Instant::now() + MAX_PAUSE);
        Ok(chunk)
    }
}

fn is_of_type(request: &HttpRequest, expected: &str) -> bool {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(expected)
}

#[cfg(test)]
mod tests {
    use actix_web::error::PayloadError;
    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;

    /// A body of chunks of this size, each of which follows a pause.
    fn body(chunks: usize, size: usize, pause: Duration) -> Payload {
        let chunks = stream::iter(0..chunks).then(move |_| async move {
            sleep(pause).await;
            Ok::<_, PayloadError>(Bytes::from(vec![b'x'; size]))
        });
        Payload::Stream { payload: Box::pin(chunks) }
    }

    /// How many chunks come in time, and whether the body does.
    async fn read_in_time(mut body: Payload) -> (usize, bool) {
        let (mut chunks, mut pace) = (0, Pace::begin());
        loop {
            match pace.next_chunk(&mut body).await {
                Ok(Some(_)) => chunks += 1,
                end => return (chunks, end.is_ok()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_has_time_and_one_that_hardly_moves_has_not() {
        let second = Duration::from_secs(1);

        assert_eq!(read_in_time(body(128, 8 * 1024, second)).await, (128, true));
        assert_eq!(read_in_time(body(10, 160 * 1024, 19 * second)).await, (10, true));
        assert_eq!(read_in_time(body(1_000, 1, second)).await, (20, false));
        assert_eq!(read_in_time(body(1, 1024, 21 * second)).await, (0, false));
    }
}
