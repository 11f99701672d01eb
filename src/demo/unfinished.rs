//! A start that was ended before the past of its servers was written. A file in the data directory says that there was one, and the
//! next start on the same data makes good for it: without all stories it begins again with new servers, and without all history
//! it writes that again, over what is there.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use uuid::Uuid;

use super::account;
use super::cast::TAG;
use crate::state::State;
use crate::store::{PageRequest, Server, StoreError};

const FILE: &str = "demo-unfinished";

/// The file. It exists from before the first simulated server is created until all history has been written.
pub struct Mark(PathBuf);

impl Mark {
    pub fn of(state: &State) -> Self {
        Self(state.config.data_dir.join(FILE))
    }

    pub async fn is_set(&self) -> io::Result<bool> {
        tokio::fs::try_exists(&self.0).await
    }

    pub async fn set(&self) -> io::Result<()> {
        tokio::fs::write(&self.0, "").await
    }

    pub async fn remove(&self) -> io::Result<()> {
        tokio::fs::remove_file(&self.0).await
    }
}

/// Removes the simulated servers, here and from `known`, unless all of their stories are there. Events, alerts and silences go
/// with them.
pub async fn remove_untold(
    state: &State,
    owner_id: Uuid,
    known: &mut HashMap<String, Server>,
) -> Result<(), StoreError> {
    let is_simulated = |server: &Server| server.tags.iter().any(|tag| tag == TAG);
    let simulated: Vec<Uuid> = known.values().filter(|it| is_simulated(it)).map(|it| it.record.id).collect();
    for server_id in &simulated {
        // The commands are written last, all at once.
        if state.store.list_commands(*server_id, PageRequest { limit: 1, offset: 0 }).await?.total > 0 {
            return Ok(());
        }
    }
    for server_id in simulated {
        account::delete(state, owner_id, server_id).await?;
    }
    known.retain(|_, server| !is_simulated(server));
    Ok(())
}
