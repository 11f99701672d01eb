//! What to do when a server's agent or the service refuses: the person who reads it is not at the server.

use crate::api::types::Server;
use crate::error::{Failure, Refusal};
use crate::output::text::{clean, shell_word};
use crate::output::time::ago;

/// What was to be done, in the words of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    Commands,
    Terminal,
    /// The system's log.
    Log,
    LogFile(&'a str),
    SeeContainers,
    ControlContainers,
}

impl Action<'_> {
    fn words(self) -> String {
        match self {
            Self::Commands => "allow commands".to_owned(),
            Self::Terminal => "allow terminals".to_owned(),
            Self::Log => "let its log be read".to_owned(),
            Self::LogFile(path) => format!("let {} be read", clean(path)),
            Self::SeeContainers => "let its containers be seen".to_owned(),
            Self::ControlContainers => "let its containers be controlled".to_owned(),
        }
    }

    /// The options of install.sh.
    fn options(self) -> String {
        match self {
            Self::Commands => "--commands on".to_owned(),
            Self::Terminal => "--terminal on".to_owned(),
            Self::Log => "--logs on".to_owned(),
            Self::LogFile(path) => format!("--logs on --log-path {}", shell_word(&clean(path))),
            Self::SeeContainers => "--docker read".to_owned(),
            Self::ControlContainers => "--docker control".to_owned(),
        }
    }

    /// What else to know before one runs it.
    fn caution(self) -> &'static str {
        match self {
            Self::LogFile(_) => " The option replaces the list of files: repeat it for those that the policy has.",
            Self::Commands | Self::Terminal | Self::Log | Self::SeeContainers | Self::ControlContainers => "",
        }
    }

    /// The right of a grant.
    fn right(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Terminal => "terminal",
            Self::Log | Self::LogFile(_) => "logs",
            Self::SeeContainers | Self::ControlContainers => "containers",
        }
    }
}

/// The failure with what to do about it.
pub fn explained(failure: Failure, server: &Server, action: Action<'_>, service: &str) -> Failure {
    let Failure::Refused(refusal) = failure else { return failure };
    let name = clean(&server.name);
    let detail = match (refusal.status, refusal.code.as_str()) {
        (_, "agent_refused" | "path_not_allowed") => format!(
            "{name}'s agent does not {}. On {name}, run:\n  curl -fsSL {service}/install.sh | sudo sh -s -- {}\nAn agent that \
             was started by hand takes the same options.{}",
            action.words(),
            action.options(),
            action.caution(),
        ),
        (_, "agent_offline") if server.status == "pending" => {
            format!(
                "{name} has no agent yet. On {name}, run the install line of its page:\n  {service}/servers/{}",
                server.id
            )
        }
        (_, "agent_offline") => format!("{name} is offline: its agent was last connected {}", ago(server.last_seen_at)),
        (403, "forbidden") => format!(
            "you may see {name}, but not do this: ask {} for the right {:?} there",
            server.owner.as_ref().map_or_else(|| "its owner".to_owned(), |owner| clean(&owner.username)),
            action.right(),
        ),
        (_, "agent_disconnected" | "agent_timeout" | "docker_error" | "docker_unavailable" | "container_not_found") => {
            format!("{name}: {}", clean(&refusal.detail))
        }
        // Everything else is not about this server.
        _ => clean(&refusal.detail),
    };
    Failure::Refused(Refusal { detail, ..refusal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(code: &str, status: u16, action: Action<'_>) -> String {
        let server = json!({"id": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "name": "web-1", "host": "192.0.2.1",
            "status": "offline", "owner": {"username": "ada"}});
        let server: Server = serde_json::from_value(server).unwrap();
        let refusal = Refusal { status, code: code.to_owned(), detail: "no".to_owned() };
        explained(Failure::Refused(refusal), &server, action, "https://a.example").to_string()
    }

    #[test]
    fn a_refusal_of_an_agent_says_what_to_run_and_where() {
        let text = words("agent_refused", 400, Action::Commands);

        assert!(text.starts_with("web-1's agent does not allow commands. On web-1, run:\n"), "{text}");
        assert!(text.contains("curl -fsSL https://a.example/install.sh | sudo sh -s -- --commands on"), "{text}");
    }

    #[test]
    fn other_refusals_name_the_server_or_the_owner() {
        assert_eq!(words("agent_offline", 400, Action::Log), "web-1 is offline: its agent was last connected never");
        assert_eq!(
            words("forbidden", 403, Action::SeeContainers),
            "you may see web-1, but not do this: ask ada for the right \"containers\" there"
        );
        assert_eq!(words("busy", 503, Action::Terminal), "no");
    }
}
