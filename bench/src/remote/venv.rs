//! Python environments with the libraries of others, made by `bench/peers`.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The folder that holds one environment a peer.
#[derive(Debug, Clone)]
pub struct Venvs(PathBuf);

impl Venvs {
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self(std::path::absolute(folder)?))
    }

    /// A program of a peer's environment.
    pub fn program(&self, peer: &str, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.0.join(peer).join("bin").join(name);
        path.exists().then_some(path).with_context(|| format!("{peer} is not installed (bench/peers does)"))
    }
}
