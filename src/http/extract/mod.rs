//! Takes requests apart: one extractor for all handlers, so that all check in the same order.
//!
//! First it identifies the caller (401), then it checks path, query and body together (422, with all faults), then the
//! caller's rights (404, 403). The handler is left with one domain call.

mod administrator;
mod body;
mod characters;
pub mod container;
pub mod cross_check;
pub mod fault;
pub mod field;
pub mod given;
pub mod names;
pub mod param;
mod proof;
mod subject;
mod text;
mod token_rules;

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use deserr::Deserr;
use paperclip::actix::OperationModifier;
use paperclip::v2::models::{DefaultOperationRaw, Either, Parameter, ParameterIn};
use paperclip::v2::schema::Apiv2Schema;

pub use text::query as parse_query;

pub use administrator::Administrator;
pub use body::{Body, Form, Json, MAX_BODY, NoBody, OptionalJson};
use fault::{Faults, Part};
pub use proof::{Fresh, Recent, Unproved, check_change_of_ways_in, check_recent};
pub use subject::{
    Anyone, CallerAt, IdPath, Manage, NoPath, OnServer, Own, Respond, See, ServerIdPath, ServerPath, SignedIn, Subject,
    UseCommands, UseContainers, UseLogs, UseTerminal, bearer_token, find_caller, identify, needs_token,
};

use super::error::ApiError;
use crate::state::State;

/// A checked request: the caller and the object, the query and the body.
pub struct Checked<S, Q = NoQuery, B = NoBody> {
    pub subject: S,
    pub query: Q,
    pub body: B,
    pub state: State,
}

/// A query without parameters.
#[derive(Debug, Clone, Copy, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct NoQuery {}

impl<S, Q, B> FromRequest for Checked<S, Q, B>
where
    S: Subject + 'static,
    Q: Deserr<Faults> + 'static,
    B: Body + 'static,
{
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move { take_apart(request, payload).await })
    }
}

async fn take_apart<S, Q, B>(request: HttpRequest, mut payload: Payload) -> Result<Checked<S, Q, B>, ApiError>
where
    S: Subject,
    Q: Deserr<Faults>,
    B: Body,
{
    let state = request.app_data::<web::Data<State>>().ok_or_else(|| ApiError::internal("no state"))?;
    let identity = S::identify(state, &request).await?;

    let mut faults = Faults::default();
    let headers = keep(&mut faults, S::check_headers(&request));
    let path = keep(&mut faults, text::path::<S::Path>(&request).map_err(|found| found.within(Part::Path)));
    let query = keep(&mut faults, text::query::<Q>(request.query_string()).map_err(|found| found.within(Part::Query)));
    // The body is read even after other faults, so that all are reported at once.
    let body = keep(&mut faults, body::read::<B>(state, &request, &mut payload).await?);
    let (Some(()), Some(path), Some(query), Some(body)) = (headers, path, query, body) else {
        return Err(ApiError::Invalid(faults));
    };

    // A body may take many seconds, in which the caller may have been signed out, disabled or demoted.
    let identity = match B::CONTENT_TYPE {
        Some(_) => S::identify(state, &request).await?,
        None => identity,
    };
    let subject = S::authorize(state, identity, path, &request).await?;
    Ok(Checked { subject, query, body, state: State::clone(state) })
}

/// Returns the value, or adds the faults to the others.
fn keep<T>(faults: &mut Faults, outcome: Result<T, Faults>) -> Option<T> {
    outcome.map_err(|found| faults.0.extend(found.0)).ok()
}

impl<S, Q, B> Apiv2Schema for Checked<S, Q, B> {}

/// Documents the path, query and body that it consists of.
impl<S, Q, B> OperationModifier for Checked<S, Q, B>
where
    S: Subject,
    S::Path: Apiv2Schema,
    Q: Apiv2Schema,
    B: Body,
{
    fn update_parameter(op: &mut DefaultOperationRaw) {
        document_parameters::<S::Path>(op, ParameterIn::Path);
        document_parameters::<Q>(op, ParameterIn::Query);
        B::document(op);
        S::document(op);
    }

    fn update_definitions(map: &mut std::collections::BTreeMap<String, paperclip::v2::models::DefaultSchemaRaw>) {
        B::define(map);
    }
}

/// Documents each field of `T` as a parameter.
fn document_parameters<T: Apiv2Schema>(op: &mut DefaultOperationRaw, place: ParameterIn) {
    let schema = T::raw_schema();
    for (name, field) in schema.properties {
        op.parameters.push(Either::Right(Parameter {
            in_: place,
            required: schema.required.contains(&name),
            data_type: field.data_type,
            format: field.format.clone(),
            enum_: field.enum_.clone(),
            description: field.description.clone(),
            name,
            ..Parameter::default()
        }));
    }
}

/// Marks an unused type parameter.
type Named<T> = PhantomData<fn() -> T>;
