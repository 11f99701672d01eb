//! Servers by what people call them.

use serde_json::Value;
use uuid::Uuid;

use super::types::Server;
use super::{Api, parsed, text_of};
use crate::error::Failure;
use crate::output::text::clean;

/// Names that a message lists before it says how many there are.
const MAX_NAMED: usize = 10;

impl Api {
    /// A server by its name or its id, as the API has it.
    pub async fn server_value(&self, wanted: &str) -> Result<Value, Failure> {
        if let Ok(id) = wanted.parse::<Uuid>() {
            return self.get(&format!("/servers/{id}"), &[]).await;
        }
        // The service finds parts of names, hosts and descriptions; only a whole name is meant here.
        let found = self.list("/servers", &[("q", wanted.to_owned())]).await?;
        let mut named: Vec<Value> = found.iter().filter(|server| text_of(server, "name") == wanted).cloned().collect();
        match (named.pop(), named.is_empty()) {
            (Some(server), true) => Ok(server),
            (Some(last), false) => {
                named.push(last);
                Err(ambiguous(wanted, &named))
            }
            (None, _) => Err(self.unknown(wanted, &found)),
        }
    }

    /// A server by its name or its id.
    pub async fn server(&self, wanted: &str) -> Result<Server, Failure> {
        parsed(self.server_value(wanted).await?)
    }

    fn unknown(&self, wanted: &str, similar: &[Value]) -> Failure {
        let names: Vec<String> = similar.iter().map(|server| clean(text_of(server, "name"))).take(MAX_NAMED).collect();
        let advice = match (names.is_empty(), similar.len() - names.len()) {
            (true, _) => "`signalboxctl servers` lists all".to_owned(),
            (false, 0) => format!("did you mean {}?", names.join(", ")),
            (false, more) => format!("did you mean {} or one of {more} more?", names.join(", ")),
        };
        Failure::failed(format!("there is no server {wanted:?} that you can see: {advice}"))
    }
}

/// Two accounts may each have a server of one name.
fn ambiguous(wanted: &str, servers: &[Value]) -> Failure {
    let line = |server: &Value| {
        let owner = server.get("owner").map(|owner| clean(text_of(owner, "username"))).unwrap_or_default();
        format!("  {}  {} of {owner}", clean(text_of(server, "id")), clean(text_of(server, "host")))
    };
    let lines: Vec<String> = servers.iter().take(MAX_NAMED).map(line).collect();
    let many = servers.len();
    Failure::usage(format!("{many} servers have the name {wanted:?}: name one by its id\n{}", lines.join("\n")))
}
