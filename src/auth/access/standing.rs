//! What somebody may do to a server, also within the bounds of a token. Pure.

use uuid::Uuid;

use super::sharing::{Facts, Sharing};
use crate::store::{Caller, Right, Rights, Role, TokenLimits, TokenScope, Visibility};

/// What a caller wants to do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read the record, metrics, events, containers and alerts.
    See,
    /// Acknowledge, resolve and silence its alerts, and write notes about them.
    Respond,
    /// What needs one of the rights of an operator.
    Use(Right),
    /// Change the record, its keys, thresholds and grants.
    Manage,
    /// Delete it.
    Own,
}

/// What somebody is for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub role: Role,
    pub rights: Rights,
}

impl Standing {
    pub const OWNER: Self = Self { role: Role::Owner, rights: Rights::ALL };

    /// What a grant gives. Only operators have some of the rights; managers have all.
    pub fn granted(role: Role, rights: Rights) -> Self {
        let rights = match role {
            Role::Viewer | Role::Responder => Rights::NONE,
            Role::Operator => rights,
            Role::Manager | Role::Owner => Rights::ALL,
        };
        Self { role, rights }
    }

    /// What a token allows at most.
    pub(super) fn of_token(token: &TokenLimits) -> Self {
        Self::granted(token.role, token.rights)
    }

    /// What remains for a program with a token.
    fn bounded_by(self, token: &TokenLimits) -> Self {
        let most = Self::of_token(token);
        Self { role: self.role.min(most.role), rights: self.rights.intersection(most.rights) }
    }

    /// What two grants give together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { role: self.role.max(other.role), rights: self.rights.union(other.rights) }
    }
}

/// What a user, maybe with a token, is for a server; `None` if they may not know of it.
pub(super) fn standing_of(sharing: &Sharing, by: (Uuid, Option<&TokenLimits>), facts: &Facts<'_>) -> Option<Standing> {
    let (user_id, token) = by;
    let standing = sharing.standing(user_id, facts)?;
    let Some(token) = token else { return Some(standing) };
    let is_in_scope = match &token.scope {
        TokenScope::All => true,
        TokenScope::Tag(tag) => facts.tags.contains(tag),
        TokenScope::ServerIds(ids) => ids.contains(&facts.server_id),
    };
    is_in_scope.then(|| standing.bounded_by(token))
}

/// Those of these servers, to which the user may do this, to which the caller may.
pub(super) fn bounded(visibility: Visibility, caller: &Caller, action: Action) -> Visibility {
    match &caller.token {
        None => visibility,
        Some(token) if allows(Standing::of_token(token), action) => visibility.within(&token.scope),
        Some(_) => visibility.nothing(),
    }
}

/// Whether this is enough for an action.
pub(super) fn allows(standing: Standing, action: Action) -> bool {
    match action {
        Action::See => true,
        Action::Respond => standing.role >= Role::Responder,
        Action::Use(right) => standing.rights.contains(right),
        Action::Manage => standing.role >= Role::Manager,
        Action::Own => standing.role == Role::Owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_the_ones_before_it_may() {
        let allowed = |role, rights: &[Right]| {
            let standing = Standing::granted(role, rights.iter().copied().collect());
            let actions = [Action::See, Action::Respond, Action::Use(Right::Logs), Action::Manage, Action::Own];
            actions.map(|action| allows(standing, action))
        };

        assert_eq!(allowed(Role::Viewer, &Right::ALL), [true, false, false, false, false]);
        assert_eq!(allowed(Role::Responder, &Right::ALL), [true, true, false, false, false]);
        assert_eq!(allowed(Role::Operator, &[Right::Logs]), [true, true, true, false, false]);
        assert_eq!(allowed(Role::Operator, &[Right::Commands]), [true, true, false, false, false]);
        assert_eq!(allowed(Role::Manager, &[]), [true, true, true, true, false]);
        assert_eq!(allowed(Role::Owner, &[]), [true; 5]);
    }
}
