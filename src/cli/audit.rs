//! The arguments of `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataArgs;
use super::values::{hash, whole};
use crate::audit::chain::HASH_LENGTH;

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that nothing in the audit log was changed, moved or removed, also while the service runs
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Hash of an entry that you wrote down earlier, and that must be in the log
    #[arg(long, value_name = "HEX", requires = "expect_seq", value_parser = hash)]
    pub expect_hash: Option<[u8; HASH_LENGTH]>,
    /// Number of that entry
    #[arg(long, value_name = "N", requires = "expect_hash", value_parser = whole::<i64>(1, i64::MAX.unsigned_abs()))]
    pub expect_seq: Option<i64>,
    /// File of allowed signers: list each order with who signed it, and fail if one was forged, altered, or lacks signatures
    #[arg(long, value_name = "FILE")]
    pub signatures: Option<PathBuf>,
    /// Command that servers run without a signature, as in `allow` of their policies (repeatable)
    #[arg(long, value_name = "PATTERN", requires = "signatures")]
    pub allow: Vec<String>,
    /// All servers ask for signatures, each under a name of its own: fail also if an entry says less, or an order without an end shares
    /// its signatures
    #[arg(long, requires = "signatures")]
    pub strict: bool,
    #[command(flatten)]
    pub data: DataArgs,
}
