//! Bodies that nobody reads to their end.
//!
//! After an answer actix reads on what is left of a chunked body, however much comes and however slowly, if nobody holds
//! the body any more; while somebody does, it says `Connection: close`, takes what comes for another second, and closes.
//! So the answer holds it. A body of a declared length is treated like that anyhow.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;

/// A body that a handler reads, as long as it likes.
#[derive(Clone)]
pub struct Unread(Rc<RefCell<Payload>>);

impl Unread {
    /// The body of a request that may be left unread; none where it needs no care.
    pub fn of(request: &mut ServiceRequest) -> Option<Self> {
        if !request.chunked().unwrap_or(false) {
            return None;
        }
        let body = Self(Rc::new(RefCell::new(request.take_payload())));
        request.set_payload(Payload::Stream { payload: Box::pin(body.clone()) });
        Some(body)
    }

    /// The answer's body, which holds the request's.
    pub fn held_by(self, body: impl MessageBody + 'static) -> BoxBody {
        BoxBody::new(Holding { body: BoxBody::new(body), _unread: self })
    }
}

impl Stream for Unread {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(cx)
    }
}

struct Holding {
    body: BoxBody,
    _unread: Unread,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
