//! What this instance does about what another one changed.

use crate::alerts::Scope;
use crate::audit::news::News;
use crate::cluster::vigil::Vigil;
use crate::feeds::{Closing, Frame, Topic};
use crate::state::State;

/// Heeds a change, which may be its own: then it is heeded already, and nothing more happens.
pub async fn heed(state: &State, vigil: &Vigil, news: News) {
    match news {
        News::KeyRevoked { key_id } => state.registry.end_key(key_id).await,
        News::LoginEnded { login_id } => state.accounts.logins.ended(login_id),
        News::PasswordChanged => vigil.look_now(),
        News::Renamed { user_id } => state.accounts.logins.renamed(user_id),
        News::ServerDeleted { server_id, owner_id } => {
            state.access.forget(server_id);
            state.jobs.forget_server(server_id);
            rules_changed(state, Scope::Server(server_id));
            state.registry.end_server(server_id).await;
            state.feeds.close(Topic::ServerEnd(server_id), Closing::ServerDeleted);
            state.feeds.publish(Topic::Servers(owner_id), Frame::Notice);
            state.tail.forget(server_id);
            state.fleet.forget(server_id);
        }
        News::ServerChanged { server_id, owner_id } => {
            state.feeds.publish(Topic::Servers(owner_id), Frame::Notice);
            rules_changed(state, Scope::Server(server_id));
        }
        News::RulesChanged { server_id: Some(server_id), .. } => rules_changed(state, Scope::Server(server_id)),
        News::RulesChanged { server_id: None, owner_id } => rules_changed(state, Scope::Owner(owner_id)),
        News::AlertResolved { alert_id } => {
            let alerts = state.alerts.clone();
            actix_web::rt::spawn(async move {
                if let Err(error) = alerts.acted(alert_id).await {
                    tracing::warn!(%error, alert.id = %alert_id, "an alert that was resolved elsewhere could not be read");
                }
            });
        }
        News::ToldOtherwise => state.notifier.nudge_here(),
        News::BatchCalledOff { batch_id } => state.jobs.batch_called_off(batch_id),
    }
}

/// In a task of its own: an evaluator that stands still must not hold up other news.
fn rules_changed(state: &State, scope: Scope) {
    let alerts = state.alerts.clone();
    actix_web::rt::spawn(async move {
        if let Err(error) = alerts.rules_changed(scope).await {
            tracing::warn!(%error, "thresholds that another instance changed could not be read, will try again");
        }
    });
}
