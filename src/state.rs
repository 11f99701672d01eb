//! Everything a handler or a socket may use, behind cheap clones.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::auth::access::Access;
use crate::auth::account::Accounts;
use crate::config::Config;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::metrics::pipeline::Pipeline;
use crate::metrics::query::History;
use crate::metrics::recorder::RecorderHandle;
use crate::registry::RegistryHandle;
use crate::store::Store;

#[derive(Clone)]
pub struct State {
    pub config: Arc<Config>,
    pub store: Store,
    pub accounts: Accounts,
    pub access: Access,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub registry: RegistryHandle,
    pub recorder: RecorderHandle,
    pub pipeline: Pipeline,
    pub history: History,
    /// Places for agents that have not authenticated yet.
    pub handshakes: Arc<Semaphore>,
}
