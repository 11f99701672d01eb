//! What a caller must have proved beyond their token, as a type around the subject.

use std::future::Future;

use actix_web::HttpRequest;
use paperclip::v2::models::DefaultOperationRaw;

use super::fault::Faults;
use super::subject::{Subject, checked, identify_unproved};
use crate::auth::Caller;
use crate::auth::factors::Factors;
use crate::http::error::ApiError;
use crate::state::State;

/// As `S`, also without the second factor that the service asks for: what people need to make or prove one.
#[derive(Debug, Clone)]
pub struct Unproved<S>(pub S);

impl<S: Subject<Identity = Caller>> Subject for Unproved<S> {
    type Identity = Caller;
    type Path = S::Path;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify_unproved(state, request).await
    }

    fn check_headers(request: &HttpRequest) -> Result<(), Faults> {
        S::check_headers(request)
    }

    async fn authorize(state: &State, caller: Caller, path: S::Path, request: &HttpRequest) -> Result<Self, ApiError> {
        S::authorize(state, caller, path, request).await.map(Self)
    }

    fn document(op: &mut DefaultOperationRaw) {
        S::document(op);
    }
}

/// A subject whose caller has also given a proof of identity that passes a check.
macro_rules! proved {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name<S>(pub S);

        impl<S: Subject<Identity = Caller>> Subject for $name<S> {
            type Identity = Caller;
            type Path = S::Path;

            fn identify(state: &State, request: &HttpRequest) -> impl Future<Output = Result<Caller, ApiError>> {
                S::identify(state, request)
            }

            fn check_headers(request: &HttpRequest) -> Result<(), Faults> {
                S::check_headers(request)
            }

            async fn authorize(
                state: &State,
                caller: Caller,
                path: S::Path,
                request: &HttpRequest,
            ) -> Result<Self, ApiError> {
                // Rights come first: nobody has to prove who they are to learn that they may not do it.
                let subject = S::authorize(state, caller.clone(), path, request).await?;
                checked(state, caller, $check).await?;
                Ok(Self(subject))
            }

            fn document(op: &mut DefaultOperationRaw) {
                S::document(op);
            }
        }
    };
}

proved!(
    /// As `S`, with a proof of identity that is recent enough (`--step-up`).
    Recent,
    Factors::check_recent
);

proved!(
    /// As `S`, with a proof of identity that is recent, also on a service without `--step-up`: for changes of the ways to sign in.
    Fresh,
    Factors::check_recent_for_ways_in
);

/// Refuses callers whose proof of identity is too old.
pub async fn check_recent(state: &State, caller: &Caller) -> Result<(), ApiError> {
    checked(state, caller.clone(), Factors::check_recent).await.map(|_| ())
}

/// Refuses callers who may not change the ways to sign in: without the second factor that they must have or that protects the
/// account, and without a recent proof.
pub async fn check_change_of_ways_in(state: &State, caller: &Caller) -> Result<(), ApiError> {
    let caller = checked(state, caller.clone(), Factors::check_second_factor).await?;
    state.accounts.factors.check_may_change(&caller).await?;
    checked(state, caller, Factors::check_recent_for_ways_in).await.map(|_| ())
}
