//! What a caller reads whose account has too much of something.

use crate::store::Quota;

/// The limit that was reached, and how to proceed.
pub(super) fn exceeded(quota: Quota, limit: u64) -> String {
    let (most, flag) = match quota {
        Quota::Servers => ("servers: delete one", "servers"),
        Quota::ApiKeys => ("API keys: revoke one", "api-keys"),
        Quota::Thresholds => ("thresholds: delete one", "thresholds"),
        Quota::Evaluations => {
            ("evaluations (thresholds times the servers that each is for): delete a threshold", "evaluations")
        }
        Quota::Silences => ("silences: delete one", "silences"),
        Quota::Channels => ("notification channels: delete one", "channels"),
        Quota::Views => ("views and dashboards: delete one", "views"),
        Quota::Grants => ("grants: end one", "grants"),
        Quota::Teams => ("teams: delete one", "teams"),
        Quota::Tokens => ("tokens: revoke one", "tokens"),
        Quota::Enrolments => ("enrolments: revoke one", "enrolments"),
        Quota::Batches => ("running batches: wait for one, or cancel it", "batches"),
        Quota::CommandStorage => {
            ("bytes of commands that have not ended: wait for one, or cancel it", "command-storage")
        }
    };
    format!("This account may have {limit} {most}, or ask the service's administrator to raise --quota-{flag}")
}
