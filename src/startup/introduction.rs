//! The log lines of a service that is ready.

use secrecy::ExposeSecret;

use super::Application;
use crate::auth::setup::Via;

impl Application {
    /// Logs what runs where, and how to create the first account if there is none yet.
    pub async fn introduce(&self) {
        let config = &self.state.config;
        let database = match config.database_directory() {
            Some(_) => "SQLite",
            None => "PostgreSQL",
        };
        let data_dir = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            address = %self.address,
            data_dir = %data_dir.display(),
            database,
            "the service is ready"
        );
        self.directories.warn_of_readers();
        // An unreachable database is no reason to end: /readyz reports it.
        if !self.state.accounts.needs_setup().await.unwrap_or(false) {
            return;
        }
        let (place, setup) = (self.place(), &self.state.accounts.setup);
        let code = setup.code().expose_secret();
        // A warning, so that it appears even with few logs.
        if setup.requires_code(Via::Direct) {
            tracing::warn!("there is no account yet: create the administrator's at {place} with the setup code {code}");
        } else {
            tracing::warn!(
                "there is no account yet: create the administrator's at {place}; through a proxy it needs the setup code {code}"
            );
        }
    }

    /// The address for people. A browser could not open an unspecified address.
    fn place(&self) -> String {
        match &self.state.config.public_url {
            Some(url) => url.clone(),
            None if self.address.ip().to_canonical().is_unspecified() => {
                format!("port {} of this machine", self.address.port())
            }
            None => format!("http://{}", self.address),
        }
    }
}
