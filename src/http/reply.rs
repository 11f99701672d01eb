//! The formats of responses.

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, Responder};
use paperclip::actix::{Apiv2Schema, OperationModifier};
use paperclip::v2::models::{DefaultOperationRaw, Either, Header, Response};
use paperclip::v2::schema::Apiv2Schema;
use serde::Serialize;
use serde_json::json;

use super::extract::fault::Faults;
use super::extract::field::described;

/// The header with the length of the whole list.
pub const TOTAL_COUNT: &str = "X-Total-Count";

/// A page of a list, with the whole list's length in a header.
pub struct Listed<T> {
    pub items: Vec<T>,
    pub total: u64,
}

/// A response that only confirms an action, in a sentence for people.
pub struct Done(pub &'static str);

/// A confirmation.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DoneOut {
    data: Option<Nothing>,
    message: String,
}

/// Always null.
#[derive(Debug, Serialize)]
pub struct Nothing {}

described!(Nothing, json!({ "type": "object" }));

impl From<Done> for DoneOut {
    fn from(Done(message): Done) -> Self {
        Self { data: None, message: message.to_owned() }
    }
}

impl Responder for Done {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(DoneOut::from(self))
    }
}

impl Apiv2Schema for Done {}

impl OperationModifier for Done {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<DoneOut> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut std::collections::BTreeMap<String, paperclip::v2::models::DefaultSchemaRaw>) {
        <actix_web::web::Json<DoneOut> as OperationModifier>::update_definitions(map);
    }
}

impl<T: Serialize> Responder for Listed<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().insert_header((TOTAL_COUNT, self.total.to_string())).json(self.items)
    }
}

impl<T: Apiv2Schema> Apiv2Schema for Listed<T> {}

impl<T: Apiv2Schema> OperationModifier for Listed<T> {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<Vec<T>> as OperationModifier>::update_response(op);
        add_header(op, TOTAL_COUNT, "Length of the whole list");
    }

    fn update_definitions(map: &mut std::collections::BTreeMap<String, paperclip::v2::models::DefaultSchemaRaw>) {
        <actix_web::web::Json<Vec<T>> as OperationModifier>::update_definitions(map);
    }
}

/// Documents an integer header of the 200 response.
pub fn add_header(op: &mut DefaultOperationRaw, name: &str, description: &str) {
    if let Some(Either::Right(response)) = op.responses.get_mut(StatusCode::OK.as_str()) {
        let response: &mut Response<_> = response;
        let header = Header {
            description: Some(description.to_owned()),
            data_type: Some(paperclip::v2::models::DataType::Integer),
            ..Header::default()
        };
        response.headers.insert(name.to_owned(), header);
    }
}

/// A fault that only shows when two fields are compared, or that only the database knows. `object.field` is a field of an object.
pub fn fault_of(field: &str, kind: &str, msg: &str) -> Faults {
    use deserr::ValuePointerRef;
    let at = |place: ValuePointerRef<'_>| Faults::at(place, kind, msg);
    match field.split_once('.') {
        None => at(ValuePointerRef::Origin.push_key(field)),
        Some((object, within)) => at(ValuePointerRef::Origin.push_key(object).push_key(within)),
    }
}
