//! A socket continues with another token of the same user.

use std::error::Error;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use signalbox_protocol::{Timestamp, close};

use super::{Context, Dashboard, Feature};
use crate::auth::Caller;
use crate::auth::bearer::BearerError;
use crate::auth::factors::{FactorError, Factors};
use crate::ws::end::End;

/// Why a socket does not continue with another token.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Bearer(#[from] BearerError),
    #[error(transparent)]
    Factor(#[from] FactorError),
}

impl<F: Feature> Dashboard<F> {
    /// Continues with a new token of the same user. One is checked at a time, so that a dashboard that sends many keeps no more
    /// than one connection to the database; of those that come during that time, the last counts.
    pub(super) fn renew(&mut self, token: Option<String>, ctx: &mut Context<F>) {
        let Some(token) = self.renewal.begin(token.unwrap_or_default()) else { return };
        let (accounts, address) = (self.services.accounts.clone(), self.pass.address.clone());
        let found = async move {
            let (caller, expires_at) = accounts.bearer(&token, || address).await?;
            let passing = accounts.factors.passing(&accounts.logins, caller, Factors::check_second_factor);
            Ok(passing.await?.map(|caller| (caller, expires_at)))
        };
        ctx.spawn(found.into_actor(self).map(|outcome: Result<_, RenewalError>, dashboard, ctx| {
            let next = dashboard.renewal.end();
            dashboard.renewed(outcome, ctx);
            if let Some(newest) = next.filter(|_| !dashboard.is_ended) {
                dashboard.renew(Some(newest), ctx);
            }
        }));
    }

    fn renewed(&mut self, outcome: Result<Option<(Caller, Timestamp)>, RenewalError>, ctx: &mut Context<F>) {
        match outcome {
            Ok(Some((caller, _))) if caller.user_id != self.pass.caller.user_id => self.refuse(ctx),
            Ok(Some((caller, expires_at))) => {
                let is_other = caller.token != self.pass.caller.token;
                self.pass.caller = caller;
                self.pass.token_expires_at = expires_at;
                // Messages that wait in the old subscription, above all its end, must not be lost with it.
                self.drain(ctx);
                self.subscribe(ctx);
                self.await_expiry(ctx);
                // The token may have been revoked before this socket subscribed.
                self.look_again(ctx);
                if is_other {
                    F::rights_changed(self, ctx);
                }
            }
            Ok(None) => self.end(close::UNAUTHORIZED, "the session has ended", ctx),
            Err(RenewalError::Factor(FactorError::SecondFactorRequired)) => {
                let (code, description) = End::Factor.closing();
                self.end(code, description, ctx);
            }
            Err(RenewalError::Bearer(BearerError::Store(error))) => self.fail(&error, ctx),
            Err(RenewalError::Bearer(BearerError::Ended | BearerError::Revoked)) => {
                self.end(close::UNAUTHORIZED, "the session has ended", ctx);
            }
            Err(RenewalError::Bearer(BearerError::Token(_) | BearerError::Network(_))) => self.refuse(ctx),
            Err(RenewalError::Factor(error)) => self.fail(&error, ctx),
        }
    }

    fn refuse(&mut self, ctx: &mut Context<F>) {
        self.end(close::UNAUTHORIZED, "the token is not valid", ctx);
    }

    fn fail(&mut self, error: &dyn Error, ctx: &mut Context<F>) {
        tracing::error!(%error, "cannot look up a login");
        self.end(close::OVERLOADED, "try again later", ctx);
    }
}
