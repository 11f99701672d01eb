//! Request bodies that the handler does not read to their end.
//!
//! If nothing holds the body after a response, actix keeps reading the rest of a chunked body, however much arrives and
//! however slowly. As long as something holds the body, actix sends `Connection: close`, reads for one more second, and
//! closes. So the response holds it. Bodies with a declared length are treated like that in any case.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;

use crate::ws::handover::Answering;

/// A body that a handler may read to any point.
#[derive(Clone)]
pub struct Unread(Rc<RefCell<Payload>>);

impl Unread {
    /// The body of a request that may be left unread; `None` if it needs no special treatment.
    pub fn of(request: &mut ServiceRequest) -> Option<Self> {
        if !request.chunked().unwrap_or(false) {
            return None;
        }
        let body = Self(Rc::new(RefCell::new(request.take_payload())));
        request.set_payload(Payload::Stream { payload: Box::pin(body.clone()) });
        Some(body)
    }
}

impl Stream for Unread {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(cx)
    }
}

/// The response's body, which holds the request's body, and with whose end the request is answered.
pub struct Holding<B> {
    body: B,
    _unread: Option<Unread>,
    _answering: Option<Answering>,
}

impl<B> Holding<B> {
    pub fn new(body: B, unread: Option<Unread>, answering: Option<Answering>) -> Self {
        Self { body, _unread: unread, _answering: answering }
    }
}

impl<B: MessageBody + Unpin> MessageBody for Holding<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
