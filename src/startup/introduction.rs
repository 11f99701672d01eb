//! What the log says once the service can serve.

use secrecy::ExposeSecret;

use super::Application;
use crate::auth::setup::Via;

impl Application {
    /// Says what runs where, and what is to be done first where nobody has an account yet.
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
        // A database that is away just now is no reason to end: /readyz tells of it.
        if !self.state.accounts.needs_setup().await.unwrap_or(false) {
            return;
        }
        let (place, setup) = (self.place(), &self.state.accounts.setup);
        let code = setup.code().expose_secret();
        // A warning, so that it is read where little is logged.
        if setup.requires_code(Via::Direct) {
            tracing::warn!("there is no account yet: create the administrator's at {place} with the setup code {code}");
        } else {
            tracing::warn!(
                "there is no account yet: create the administrator's at {place}; through a proxy it needs the setup code {code}"
            );
        }
    }

    /// Where people find it. An address that stands for all of a machine's own is none that a browser could open.
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
