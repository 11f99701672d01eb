//! The effects of changes: the same whether a change was made here or read from the audit log.

use crate::alerts::Scope;
use crate::change::Change;
use crate::feeds::{Closing, FeedFrame, Topic};
use crate::state::State;

/// Applies a change that was made here, and signals the other instances to read it.
pub async fn commit(state: &State, change: Change) {
    apply(state, change).await;
    state.cluster.change_signal().ring();
}

/// Applies the effects of a change that was made here or elsewhere. Applying it twice does no harm: with several
/// instances the one that made the change reads it, too.
pub async fn apply(state: &State, change: Change) {
    match change {
        Change::KeyRevoked { key_id } => state.registry.end_key(key_id).await,
        Change::LoginEnded { login_id } => state.accounts.logins.ended(login_id),
        Change::PasswordChanged { user_id, ended } => {
            let logins = &state.accounts.logins;
            ended.into_iter().for_each(|login_id| logins.ended(login_id));
            logins.look_at(user_id).await;
        }
        Change::AccessChanged => state.accounts.access.changed().await,
        Change::SecondFactorReset { user_id } => state.accounts.logins.look_at(user_id).await,
        Change::UserRenamed { user_id } => state.accounts.logins.forget(user_id),
        Change::AccountChanged { user_id } => {
            let logins = &state.accounts.logins;
            logins.look_at(user_id).await;
            // What the caller may do is cached with the name.
            logins.forget(user_id);
            state.accounts.access.changed().await;
        }
        Change::AccountDeleted { user_id, servers_to, batches } => {
            state.accounts.logins.look_at(user_id).await;
            state.accounts.access.account_deleted(user_id).await;
            batches.into_iter().for_each(|batch_id| state.jobs.batches().cancelled(batch_id));
            // The agents connect again, as those of the new owner.
            state.registry.end_owner(user_id).await;
            if let Some(owner_id) = servers_to {
                state.feeds.publish(Topic::Servers(owner_id), FeedFrame::Notice);
                state.alerts.rules_changed(Scope::Owner(owner_id)).await;
            }
            // Channels and silences ended with the account.
            state.notifier.nudge_here();
        }
        Change::ServerDeleted { server_id, owner_id } => {
            // First, so that nobody can get access again; then everything that is still open ends.
            state.accounts.access.server_deleted(server_id, owner_id).await;
            state.feeds.publish(Topic::Servers(owner_id), FeedFrame::Notice);
            state.jobs.forget_server(server_id);
            state.registry.end_server(server_id).await;
            state.feeds.close(Topic::ServerEnd(server_id), Closing::ServerDeleted);
            state.alerts.rules_changed(Scope::Server(server_id)).await;
            state.metrics.pipeline.forget(server_id);
            state.fleet.forget(server_id);
        }
        Change::ServerChanged { server_id, owner_id } => {
            state.accounts.access.server_changed(server_id, owner_id);
            state.feeds.publish(Topic::Servers(owner_id), FeedFrame::Notice);
            state.alerts.rules_changed(Scope::Server(server_id)).await;
            // The server's tags decide who is notified.
            state.notifier.nudge_here();
        }
        Change::RulesChanged { server_id: Some(server_id), .. } => {
            state.alerts.rules_changed(Scope::Server(server_id)).await;
        }
        Change::RulesChanged { server_id: None, owner_id } => state.alerts.rules_changed(Scope::Owner(owner_id)).await,
        Change::AlertResolved { alert_id } => {
            if let Err(error) = state.alerts.resolved(alert_id).await {
                tracing::warn!(%error, alert.id = %alert_id, "cannot read a resolved alert");
            }
        }
        Change::NotificationsChanged => state.notifier.nudge_here(),
        Change::BatchCancelled { batch_id } => state.jobs.batches().cancelled(batch_id),
        // Several instances compare logins, sessions and batches with the database all the time anyway.
        Change::Rewound => {
            state.accounts.access.rewound().await;
            let is_list = |topic: &Topic| matches!(topic, Topic::Servers(_) | Topic::Alerts(_));
            state.feeds.deliver_where(is_list, &FeedFrame::Notice);
            state.alerts.rewound().await;
            state.notifier.nudge_here();
        }
    }
}
