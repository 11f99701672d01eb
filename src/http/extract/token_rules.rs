//! What the token of a program may ask for at all. A path that is not here is refused, so that a new route is closed to tokens
//! until somebody decides about it. `auth::access` decides the rest.

use actix_web::HttpRequest;
use actix_web::http::Method;

use crate::auth::Caller;
use crate::auth::access::{AccessError, Action};
use crate::http::error::ApiError;
use crate::http::path::API;
use crate::state::State;

/// What a token needs for the paths of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The servers decide, or whatever else the handler names.
    Servers,
    /// They belong to the whole account: what a token needs to read them, and to change them.
    Account { reads: Action, writes: Action },
}

/// The first part of each path that tokens may use.
const RULES: [(&str, Rule); 12] = [
    ("alerts", Rule::Servers),
    ("api-keys", Rule::Servers),
    ("audit", Rule::Servers),
    ("commands", Rule::Servers),
    ("docker", Rule::Servers),
    ("events", Rule::Servers),
    ("logs", Rule::Servers),
    ("metrics", Rule::Servers),
    ("servers", Rule::Servers),
    // A channel says where all alerts go, and has secrets.
    ("notifications", Rule::Account { reads: Action::Manage, writes: Action::Manage }),
    // They concern all servers of the account.
    ("updates", Rule::Account { reads: Action::See, writes: Action::Manage }),
    // Views and dashboards name servers.
    ("views", VIEWS),
];

const VIEWS: Rule = Rule::Account { reads: Action::See, writes: Action::Manage };

/// Refuses what no token may do, and what this one may not do to what belongs to the whole account.
pub(super) fn check(state: &State, request: &HttpRequest, caller: &Caller) -> Result<(), ApiError> {
    if caller.token.is_none() {
        return Ok(());
    }
    let pattern = request.match_pattern().unwrap_or_default();
    match rule(&pattern).ok_or(AccessError::TokenNotAllowed)? {
        Rule::Servers => Ok(()),
        Rule::Account { reads, writes } => {
            let action = if request.method() == Method::GET { reads } else { writes };
            Ok(state.accounts.access.account(caller, None, action)?)
        }
    }
}

/// The rule of a route; none if it is not for tokens.
fn rule(pattern: &str) -> Option<Rule> {
    let path = pattern.strip_prefix(API)?.strip_prefix('/')?;
    // Says who has which grants.
    if path == "servers/{id}/access" {
        return None;
    }
    // They show what people did, and secrets that they saw.
    if path.starts_with("servers/{id}/recordings") {
        return None;
    }
    // What waits runs later for its user, who may do more than the token.
    if path.starts_with("commands/approvals") {
        return None;
    }
    let first = path.split('/').next()?;
    let first = if first == "dashboards" { "views" } else { first };
    RULES.iter().find(|(name, _)| *name == first).map(|(_, rule)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_rule_are_closed_to_tokens() {
        for pattern in [
            "",
            "/api/v1",
            "/api/v1/",
            "/api/v1/auth/me",
            "/api/v1/tokens",
            "/api/v1/tokens/{id}",
            "/api/v1/users/invitations",
            "/api/v1/teams/{id}/members/{user_id}",
            "/api/v1/grants",
            "/api/v1/servers/{id}/access",
            "/api/v1/servers/{id}/recordings",
            "/api/v1/servers/{id}/recordings/{recording_id}",
            "/api/v1/commands/approvals",
            "/api/v1/commands/approvals/{id}/signatures",
            "/api/v1/schedules",
            "/api/v1/serversx",
            "/servers",
        ] {
            assert_eq!(rule(pattern), None, "{pattern}");
        }
        assert_eq!(rule("/api/v1/servers/{id}/events"), Some(Rule::Servers));
        assert_eq!(rule("/api/v1/dashboards/{id}"), Some(VIEWS));
    }
}
