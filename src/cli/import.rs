//! The flags of `signalbox import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::SecretString;

use super::values::{log_filter, secret};
use crate::config::Config;
use crate::observe::LogFormat;
use crate::store::{DatabaseSettings, Pooler};

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Move all data of a stopped service from SQLite to an empty PostgreSQL database, and compare both. After an
    /// interruption, the same command continues
    SqliteToPostgres(SqliteToPostgresArgs),
}

#[derive(Debug, Args)]
pub struct SqliteToPostgresArgs {
    /// Only say what would be moved; changes nothing, and works while the service runs
    #[arg(long)]
    pub check: bool,
    /// Data directory of the service, with the SQLite database
    #[arg(long, env = "SIGNALBOX_DATA_DIR", value_name = "DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    /// SQLite database file [default: signalbox.db in the data directory]
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// PostgreSQL database that gets the data: postgres://user:password@host/name
    #[arg(long, env = "SIGNALBOX_DATABASE_URL", value_name = "URL", hide_env_values = true, value_parser = secret)]
    pub database_url: SecretString,
    /// Connection pooler in front of PostgreSQL; transaction: PgBouncer in transaction mode
    #[arg(long, env = "SIGNALBOX_DATABASE_POOLER", value_name = "POOLER", value_enum, default_value = "none")]
    pub database_pooler: Pooler,
    /// What to log: error, warn, info, debug, trace, or a filter such as info,signalbox=debug
    #[arg(long, env = "SIGNALBOX_LOG", value_name = "FILTER", default_value = "info", value_parser = log_filter)]
    pub log: String,
    /// Format of log lines
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

impl SqliteToPostgresArgs {
    /// A configuration that knows where the data comes from.
    pub fn source(&self) -> Config {
        self.from.as_ref().map_or_else(|| Config::new(&self.data_dir), |file| Config::of_file(file))
    }

    /// A configuration that knows where the data goes to.
    pub fn target(&self) -> Config {
        let database = DatabaseSettings { pooler: self.database_pooler, ..DatabaseSettings::default() };
        Config { database_url: Some(self.database_url.clone()), database, ..Config::new(&self.data_dir) }
    }
}
