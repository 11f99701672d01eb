//! What runs only with signatures, where the owner's policy says `signed`.
//!
//! The service stores signed payloads and carries them; this decides. [`Demands`] are what the owner's files say, and
//! [`trust`] refuses files that anybody but root could have changed. [`Gate::permit`] is the one decision: the library
//! `signalbox_signing` says whether enough people signed what is asked, for this server and for now, and [`nonces`] that it is
//! the first time. Whatever goes wrong refuses.

mod allow;
mod demands;
mod examine;
pub mod explain;
mod nonces;
pub mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::RequestError;
use signalbox_protocol::signed::Signed;
pub use signalbox_signing::Asked;
use signalbox_signing::{Payload, Reason, Refusal, Terms, Use};
use uuid::Uuid;

use crate::config::Config;
use crate::state::{DiskWorker, OpenError, Opening, StateDir, WAIT};
pub use allow::Allowed;
pub use demands::{Demands, DemandsError, check};
use nonces::{Nonces, Start, UseError};

/// The consequence, for people, while the disk is away.
const CONSEQUENCE: &str = "signed commands are refused until it is back";

/// Decides what runs with signatures; cheap to clone.
#[derive(Clone, Default)]
pub struct Gate(Option<Arc<Inner>>);

struct Inner {
    demands: Arc<Demands>,
    /// Locked for the length of one call, never across an await.
    nonces: Mutex<NoncesState>,
}

/// Where the used nonces are.
enum NoncesState {
    /// No directory can keep them.
    Missing,
    Opening(Opening<Nonces, (), OpenError>),
    Open(DiskWorker<Nonces>),
}

impl Gate {
    /// Without demands it permits nothing.
    pub fn open(config: &Config, state: Option<StateDir>) -> Self {
        let Some(demands) = config.demands.clone() else { return Self::default() };
        let opening = state.map(|state| {
            let start = Start::now();
            DiskWorker::open(CONSEQUENCE, move || Ok((Nonces::claiming(state, start), ())))
        });
        let nonces = match opening {
            Some(Ok(opening)) => NoncesState::Opening(opening),
            Some(Err(_)) | None => NoncesState::Missing,
        };
        Self(Some(Arc::new(Inner { demands, nonces: Mutex::new(nonces) })))
    }

    /// Whether a command may run without a signature and without a shell. Returns its words.
    pub fn allowed(&self, command: &str, stdin: Option<&str>) -> Option<Vec<String>> {
        let Self(Some(inner)) = self else { return None };
        // The owner allowed a command, not what it would do with somebody's input. An empty one is none.
        stdin.is_none_or(str::is_empty).then(|| inner.demands.allowed.words_of(command)).flatten()
    }

    /// Whether this may run: exactly this, here, now, once. `id` is what the service calls it.
    pub fn permit(&self, signed: Option<&Signed>, asked: Asked<'_>, id: Uuid) -> Result<Payload, RequestError> {
        let Self(Some(inner)) = self else {
            return Err(refused(Refusal::new(Reason::NotSigned, "this agent knows no signers: see its policy file")));
        };
        let name = inner.demands.name.as_str();
        let Some(signed) = signed else {
            let detail = format!("this server, `{name}`, runs what its operators have signed only");
            return Err(refused(Refusal::new(Reason::NotSigned, detail)));
        };
        let now = Timestamp::now();
        let Demands { signers, approvals, .. } = inner.demands.as_ref();
        let terms = Terms { name, signers, approvals: *approvals };
        let payload = terms.permit(signed, asked, now).map_err(refused)?;
        inner.use_once(payload.uses(now).map_err(refused)?, id, now)?;
        Ok(payload)
    }
}

impl Inner {
    /// Keeps on the disk, before anything runs, that a payload was used, in the first of these ways that is left. Without the
    /// record, an order and its copy look the same.
    fn use_once(&self, uses: Vec<Use>, id: Uuid, now: Timestamp) -> Result<(), RequestError> {
        let unkept = |why: &str| {
            let detail =
                format!("this agent cannot record that a signature was used, so it runs nothing that is signed: {why}");
            RequestError::new("agent_refused", &detail)
        };
        let mut state = self.nonces.lock();
        state.look();
        let NoncesState::Open(worker) = &mut *state else {
            return Err(unkept("its state directory cannot be used"));
        };
        // Logs that the disk is back, where that is new.
        _ = worker.is_here();
        // The first to set this decides: the thread, that the order runs, or this, when its time is up, that it does not.
        let is_decided = Arc::new(AtomicBool::new(false));
        let by_thread = is_decided.clone();
        let used = worker.call(move |nonces| {
            let key = use_one(nonces, &uses, id, now)?;
            if by_thread.swap(true, Ordering::AcqRel)
                && let Err(error) = nonces.take_back(key)
            {
                tracing::warn!(%error, job.id = %id, "a signature stays used, although nothing has run with it");
            }
            Ok::<_, UseError>(())
        });
        match used {
            Some(Ok(())) => Ok(()),
            Some(Err(UseError::Replayed(detail))) => Err(refused(Refusal::new(Reason::Replayed, detail))),
            Some(Err(UseError::Expired(detail))) => Err(refused(Refusal::new(Reason::Expired, detail))),
            Some(Err(UseError::Io(error))) => Err(unkept(&error.to_string())),
            None if is_decided.swap(true, Ordering::AcqRel) => Ok(()),
            // The thread takes back what it may still write.
            None => Err(unkept("the disk of its state directory hangs")),
        }
    }
}

/// Uses the first way that is left and returns its key, or says why the last one is not.
fn use_one<'a>(nonces: &mut Nonces, uses: &'a [Use], id: Uuid, now: Timestamp) -> Result<&'a str, UseError> {
    let mut outcome = Err(UseError::Expired("the signed payload cannot be used now".to_owned()));
    for Use { key, not_before, expires_at } in uses {
        outcome = nonces.use_once(key, *not_before, *expires_at, id, now).map(|()| key.as_str());
        // Another way does not help against a disk that fails.
        if matches!(outcome, Ok(_) | Err(UseError::Io(_))) {
            break;
        }
    }
    outcome
}

impl NoncesState {
    /// Takes in whether the files are open by now.
    fn look(&mut self) {
        *self = match std::mem::replace(self, Self::Missing) {
            Self::Opening(opening) => match opening.wait(WAIT) {
                Ok(Ok((worker, ()))) => Self::Open(worker),
                Ok(Err(_)) => Self::Missing,
                Err(still) => Self::Opening(still),
            },
            other => other,
        };
    }
}

fn refused(refusal: Refusal) -> RequestError {
    let error = RequestError::new("agent_refused", &refusal.detail);
    RequestError { reason: Some(refusal.reason.name().to_owned()), ..error }
}

#[cfg(test)]
mod tests;
