//! The REST API of the service, with the real agent behind it.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::rest::Rest;

/// A client on a connection that is kept alive.
#[derive(Debug)]
pub struct Ours {
    pub rest: Rest,
    pub server_id: Uuid,
}

impl Ours {
    pub async fn run(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let end = self.rest.run_command(self.server_id, "true").await?;
        let took = start.elapsed();
        anyhow::ensure!(end.status == "succeeded" && end.exit_code == Some(0), "`true` ended as {end:?}");
        anyhow::ensure!(end.output.is_empty(), "`true` said something: {end:?}");
        Ok(took)
    }
}
