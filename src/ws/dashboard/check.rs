//! Whether a socket may stay open.

use actix::{ActorFutureExt, AsyncContext, WrapFuture};

use super::{Context, Dashboard, Feature};
use crate::auth::access::AccessError;
use crate::auth::account::Accounts;
use crate::auth::factors::{FactorError, Factors};
use crate::store::StoreError;
use crate::ws::end::End;

impl<F: Feature> Dashboard<F> {
    /// Closes the socket if its login has ended, its server is deleted, or the caller has lost the right to it. The check before
    /// the upgrade may be outdated: by a change before this socket subscribed, or on another instance.
    pub(super) fn look_again(&mut self, ctx: &mut Context<F>) {
        if self.look.begin(()).is_none() {
            return;
        }
        let (accounts, store) = (self.services.accounts.clone(), self.services.store.clone());
        let address = self.pass.address.clone();
        let (login_id, server) = (self.pass.caller.login_id, self.pass.server);
        let looked = async move {
            let Accounts { logins, factors, access, programs, tokens, .. } = &*accounts;
            let Some(caller) = logins.caller(login_id).await? else { return Ok(Some(End::Session)) };
            let caller = match factors.passing(logins, caller, Factors::check_second_factor).await {
                Ok(Some(caller)) => caller,
                Ok(None) => return Ok(Some(End::Session)),
                Err(FactorError::Store(error)) => return Err(error),
                Err(_) => return Ok(Some(End::Factor)),
            };
            if let Some(token) = &caller.token {
                programs.note_use(token.id, &address, tokens.now());
            }
            let Some((server_id, action)) = server else { return Ok(None) };
            if store.owner_of_server(server_id).await?.is_none() {
                return Ok(Some(End::Server));
            }
            match access.server(&caller, server_id, action).await {
                Ok(_) => Ok(None),
                Err(AccessError::NotFound) => Ok(Some(End::Sight)),
                Err(AccessError::Forbidden | AccessError::TokenNotAllowed) => Ok(Some(End::Right)),
                Err(AccessError::Store(error)) => Err(error),
            }
        };
        ctx.spawn(looked.into_actor(self).map(|outcome: Result<_, StoreError>, dashboard, ctx| {
            let looks_again = dashboard.look.end().is_some();
            match outcome {
                Ok(None) => {}
                Ok(Some(end)) => {
                    let (code, description) = end.closing();
                    dashboard.end(code, description, ctx);
                }
                Err(error) => tracing::warn!(%error, "cannot look up a login"),
            }
            if looks_again && !dashboard.is_ended {
                dashboard.look_again(ctx);
            }
        }));
    }
}
