//! What to do when a server's agent or the service refuses: the person who reads it is not at the server.

use signalbox_signing::Reason;

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

    /// What the agent reports if its policy asks for signatures of this.
    fn signed_capability(self) -> Option<&'static str> {
        match self {
            Self::Commands => Some("commands_signed"),
            Self::Terminal => Some("terminal_signed"),
            Self::ControlContainers => Some("docker_signed"),
            Self::Log | Self::LogFile(_) | Self::SeeContainers => None,
        }
    }

    /// Whether the server's policy asks for signatures of this, as its agent reported.
    pub fn needs_signature(self, server: &Server) -> bool {
        let capabilities = server.agent.iter().flat_map(|agent| &agent.capabilities);
        self.signed_capability().is_some_and(|needed| capabilities.into_iter().any(|known| known == needed))
    }

    /// The same call, signed.
    fn signed_call(self, server: &str) -> String {
        let server = shell_word(server);
        match self {
            Self::Terminal => format!("signalboxctl shell --sign ~/.ssh/id_ed25519 {server}"),
            Self::SeeContainers | Self::ControlContainers => {
                format!("signalboxctl containers {server} restart CONTAINER --sign ~/.ssh/id_ed25519")
            }
            Self::Commands | Self::Log | Self::LogFile(_) => {
                format!("signalboxctl exec --sign ~/.ssh/id_ed25519 {server} -- COMMAND")
            }
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

/// What to do where a signature is missing or did not suffice. `keys` signed.
fn signature_advice(reason: Reason, name: &str, action: Action<'_>, keys: &[String]) -> String {
    match reason {
        Reason::NotSigned => format!("{name} asks for signatures. Sign: {}", action.signed_call(name)),
        Reason::UnknownSigner => {
            let lines: Vec<String> = keys.iter().map(|key| format!("  YOUR-NAME {key}")).collect();
            format!(
                "{name} counts no signature of this key. Its owner can add a line to the file of signers that the policy names, and \
                 restart the agent:\n{}",
                lines.join("\n")
            )
        }
        Reason::WrongServer => format!(
            "the policy of {name} has another `name` for this server (`signalbox-agent check-policy` there says it): sign with \
             --as NAME"
        ),
        Reason::Expired => format!(
            "the signature does not hold on {name} now: compare the clocks of both machines, or sign for longer with --valid-for. \
             An agent that has just been installed refuses what began before its record: sign with --clock-skew 0s"
        ),
        Reason::Replayed => {
            format!("{name} has already seen this signature, and each holds once: run it again, which signs again")
        }
        Reason::NotEnoughApprovals => format!(
            "{name} wants signatures of more people: repeat --sign for the key of each, or let the command wait for theirs \
             with --await-approval"
        ),
    }
}

/// The failure with what to do about it. `keys` are those that signed, none where nothing was.
pub fn explained(failure: Failure, server: &Server, action: Action<'_>, service: &str, keys: &[String]) -> Failure {
    let Failure::Refused(refusal) = failure else { return failure };
    let name = clean(&server.name);
    // A terminal's error has no reason if the service is an older one.
    let asks = action.needs_signature(server);
    // Neither has the record of a command that was refused before its socket opened.
    let reason = refusal.reason.or_else(|| match keys {
        [] => asks.then_some(Reason::NotSigned),
        _ => Reason::in_words(&refusal.detail),
    });
    let detail = match (refusal.status, refusal.code.as_str()) {
        (_, "agent_refused") if let Some(reason) = reason => {
            format!("{name}: {}.\n{}", clean(&refusal.detail), signature_advice(reason, &name, action, keys))
        }
        // What the agent or the service says about the signature.
        (_, "agent_refused") if asks || !keys.is_empty() => format!("{name}: {}", clean(&refusal.detail)),
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

/// Whether what was asked for may have been done, or may still be under way: the answer of the service or of the agent is missing.
pub fn is_unknown(failure: &Failure) -> bool {
    let is_lost = failure.is_passing() && !matches!(failure, Failure::NotSent(_));
    is_lost || matches!(failure.code(), "agent_disconnected" | "agent_timeout")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(code: &str, status: u16, action: Action<'_>) -> String {
        let refusal = Refusal { status, code: code.to_owned(), detail: "no".to_owned(), reason: None };
        words_of(refusal, action, &[])
    }

    fn words_of(refusal: Refusal, action: Action<'_>, keys: &[String]) -> String {
        let server = json!({"id": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "name": "web-1", "host": "192.0.2.1",
            "status": "offline", "owner": {"username": "ada"}});
        let server: Server = serde_json::from_value(server).unwrap();
        explained(Failure::Refused(refusal), &server, action, "https://a.example", keys).to_string()
    }

    #[test]
    fn a_refusal_of_an_agent_says_what_to_run_and_where() {
        let text = words("agent_refused", 400, Action::Commands);

        assert!(text.starts_with("web-1's agent does not allow commands. On web-1, run:\n"), "{text}");
        assert!(text.contains("curl -fsSL https://a.example/install.sh | sudo sh -s -- --commands on"), "{text}");
    }

    #[test]
    fn a_signature_of_a_terminal_that_was_used_already_is_known_by_its_reason_or_its_words() {
        let keys = ["ssh-ed25519 AAAA".to_owned()];
        let refused = |detail: &str, reason| {
            let refusal = Refusal { status: 400, code: "agent_refused".to_owned(), detail: detail.to_owned(), reason };
            words_of(refusal, Action::Terminal, &keys)
        };
        let advice = "web-1 has already seen this signature";

        let by_reason = refused("no", Some(Reason::Replayed));
        let by_words = refused("what was signed has run already: sign it again", None);

        assert!(by_reason.contains(advice), "{by_reason}");
        assert!(by_words.contains(advice), "{by_words}");
    }

    #[test]
    fn only_a_missing_answer_leaves_open_what_was_done() {
        let refused =
            |status, code: &str| Refusal { status, code: code.to_owned(), detail: "no".to_owned(), reason: None };

        for (status, code) in [(400, "agent_timeout"), (400, "agent_disconnected"), (502, ""), (503, "busy")] {
            assert!(is_unknown(&Failure::Refused(refused(status, code))), "{status} {code}");
        }
        assert!(is_unknown(&Failure::Unreachable("no".to_owned())));
        assert!(!is_unknown(&Failure::NotSent("no".to_owned())));
        for (status, code) in [(400, "agent_offline"), (400, "agent_refused"), (422, "")] {
            assert!(!is_unknown(&Failure::Refused(refused(status, code))), "{status} {code}");
        }
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
