//! How many shares one account has in lists, and whose.

use std::collections::HashMap;

use uuid::Uuid;

use crate::GrantScope;

/// Servers, tags and owners that one account can see by grants. It bounds the values of a statement, of which SQLite takes 32,766.
pub(super) const MAX_SHARES: usize = 5_000;

/// At most [`MAX_SHARES`] of them. Grants come unasked, so those of an owner who gives many must not displace those of others: each
/// owner's first, then each owner's second, and so on.
pub(super) fn bounded(scopes: Vec<(Uuid, &GrantScope)>) -> Vec<(Uuid, &GrantScope)> {
    if scopes.len() <= MAX_SHARES {
        return scopes;
    }
    let mut seen: HashMap<Uuid, usize> = HashMap::new();
    let mut ranked: Vec<(usize, (Uuid, &GrantScope))> = Vec::with_capacity(scopes.len());
    for (owner_id, scope) in scopes {
        let rank = seen.entry(owner_id).or_default();
        ranked.push((*rank, (owner_id, scope)));
        *rank += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().take(MAX_SHARES).map(|(_, scope)| scope).collect()
}
