//! The REST API of the service, with the real agent behind it.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::signer::Signer;
use crate::rest::Rest;

/// A client on a connection that is kept alive.
#[derive(Debug)]
pub struct Ours {
    pub rest: Rest,
    pub server_id: Uuid,
    /// Who signs each command, where the server asks for it.
    pub signer: Option<Signer>,
}

impl Ours {
    /// From the request to its answer. Signing comes before it.
    pub async fn run(&self) -> anyhow::Result<Duration> {
        let signed = match &self.signer {
            Some(signer) => Some(signer.sign("true").await?),
            None => None,
        };
        let start = Instant::now();
        let end = self.rest.run_signed(self.server_id, "true", signed).await?;
        let took = start.elapsed();
        anyhow::ensure!(end.status == "succeeded" && end.exit_code == Some(0), "`true` ended as {end:?}");
        anyhow::ensure!(end.output.is_empty(), "`true` said something: {end:?}");
        Ok(took)
    }
}
