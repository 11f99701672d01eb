//! Several instances of the service on one database. Which of them an agent or a person is connected to makes no
//! difference to anybody.
//!
//! - [`follow`]: what others change, as the audit log tells it; [`vigil`]: what is held here, against the database
//! - [`exchange`]: what happens, to whoever watches it on another instance; [`interest`]: who does
//! - [`members`]: which instances are alive
//! - `shards`: which part of the work that must happen once is this instance's
//! - [`remote`]: servers whose agents other instances hold

pub mod exchange;
pub mod follow;
pub mod interest;
pub mod members;
pub mod remote;
mod shards;
pub mod vigil;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

pub use shards::Shards;

use crate::bus::post::Post;
use crate::registry::{Elsewhere, Nowhere};
use follow::Bell;
use members::Members;
use remote::Remote;
use remote::home::Home;

/// What this instance knows of the others, behind cheap clones.
#[derive(Clone)]
pub struct Cluster {
    /// Names this run of the service.
    pub instance_id: Uuid,
    pub shards: Shards,
    /// Where the audit log ended when this instance began.
    pub seq_at_start: i64,
    others: Option<Others>,
    bell: Bell,
    is_draining: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Others {
    post: Post,
    members: Members,
    remote: Remote,
}

impl Cluster {
    /// There is no other instance.
    pub fn alone() -> Self {
        let (bell, is_draining) = (Bell::default(), Arc::default());
        Self { instance_id: Uuid::now_v7(), shards: Shards::all(), seq_at_start: 0, others: None, bell, is_draining }
    }

    /// One of several.
    pub fn among(post: Post, members: Members, seq_at_start: i64) -> Self {
        let (instance_id, shards) = (post.instance_id, members.shards());
        let remote = Remote::new(post.clone());
        let (bell, is_draining) = (Bell::default(), Arc::default());
        Self { instance_id, shards, seq_at_start, others: Some(Others { post, members, remote }), bell, is_draining }
    }

    /// Whether there is no other instance, and never will be.
    pub fn is_alone(&self) -> bool {
        self.others.is_none()
    }

    /// The way to other instances; none where there are no others.
    pub fn post(&self) -> Option<&Post> {
        self.others.as_ref().map(|others| &others.post)
    }

    /// Which instances there are; none where there are no others.
    pub fn members(&self) -> Option<&Members> {
        self.others.as_ref().map(|others| &others.members)
    }

    /// The way to servers of other instances; none where there are no others.
    pub fn remote(&self) -> Option<&Remote> {
        self.others.as_ref().map(|others| &others.remote)
    }

    /// Where the registry sends what no session here is for.
    pub fn elsewhere(&self) -> Arc<dyn Elsewhere> {
        match self.remote() {
            Some(remote) => Arc::new(remote.clone()),
            None => Arc::new(Nowhere),
        }
    }

    /// Something was changed here that the audit log tells: the others look at once.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// A server that an agent has just connected for: whoever held it before lets go.
    pub async fn took_over(&self, server_id: Uuid) {
        if let Some(remote) = self.remote() {
            remote.took_over(server_id).await;
        }
    }

    /// Answers other instances from now on.
    pub fn open(&self, home: Home) {
        if let Some(remote) = self.remote() {
            remote.open(home);
        }
    }

    /// Whether what needs other instances can be done at this moment.
    pub fn is_connected(&self) -> bool {
        self.post().is_none_or(Post::is_up)
    }

    /// This instance ends soon.
    pub async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        if let Some(members) = self.members() {
            members.drain().await;
        }
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }
}
