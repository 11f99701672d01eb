//! What became of an order, as its second entry says.

use serde_json::Value;
use signalbox_signing::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The agent may have run it: there is no second entry, or it does not say.
    Unknown,
    /// The agent ran it.
    Ran,
    /// The agent did not run it, for this reason.
    NotRun(String),
}

impl Fate {
    pub fn of(kind: Kind, outcome: &str, detail: &Value) -> Self {
        let code = outcome.strip_prefix("failed: ").unwrap_or(outcome);
        let reason = detail.get("reason").and_then(Value::as_str);
        match (code, reason) {
            ("refused" | "agent_refused", Some(reason)) => {
                Self::NotRun(format!("refused by the agent ({})", reason.escape_debug()))
            }
            // It may have been open: one that was signed for some time ends like this, too.
            ("agent_refused", None) if kind == Kind::Terminal => Self::Unknown,
            ("agent_refused", None) => Self::NotRun("refused by the agent".to_owned()),
            // The service refuses, too: a right may have ended.
            ("refused" | "forbidden", _) => Self::NotRun("refused".to_owned()),
            ("agent_offline", _) => Self::NotRun("the agent was not connected".to_owned()),
            ("agent_busy", _) => Self::NotRun("refused by the agent (agent_busy)".to_owned()),
            // How commands end that have run.
            ("ok" | "failed" | "timed_out" | "cancelled", _) => Self::Ran,
            _ => Self::Unknown,
        }
    }
}
