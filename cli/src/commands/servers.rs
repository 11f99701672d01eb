//! The servers that the caller can see.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::files::{NewSecret, new_private};
use super::{Call, prompt};
use crate::api::types::Server;
use crate::api::{parsed, text_of};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::{clean, shell_word};
use crate::output::time::{ago, local};
use crate::output::{self, Format};

/// List, add, show and remove servers
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Servers {
    #[command(subcommand)]
    command: Option<ServersCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum ServersCommand {
    /// List the servers that you can see (the default)
    Ls(List),
    /// Show a server
    Show {
        /// Name or id
        #[arg(value_name = "SERVER")]
        server: String,
    },
    /// Add a server
    Add(Add),
    /// Delete a server, its history and its keys
    Rm {
        /// Name or id
        #[arg(value_name = "SERVER")]
        server: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Default, Args)]
struct List {
    /// Only servers with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only servers of this status
    #[arg(long, value_parser = ["pending", "online", "offline"], value_name = "STATUS")]
    status: Option<String>,
    /// Only servers with this text in their name, host or description
    #[arg(short, long, value_name = "TEXT")]
    query: Option<String>,
}

#[derive(Debug, Args)]
struct Add {
    #[arg(value_name = "NAME")]
    name: String,
    /// Host name or address
    #[arg(long, value_name = "HOST")]
    host: String,
    /// The port of SSH
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// A tag (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Also create a key for the agent and write it to this new file, which only you can read
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Servers {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        match self.command.unwrap_or(ServersCommand::Ls(self.list)) {
            ServersCommand::Ls(list) => list.run(call).await,
            ServersCommand::Show { server } => show(call, &server).await,
            ServersCommand::Add(add) => add.run(call).await,
            ServersCommand::Rm { server, yes } => remove(call, &server, yes).await,
        }
    }
}

impl List {
    async fn run(self, call: &Call) -> Result<(), Failure> {
        let filters = [("tag", self.tag), ("status", self.status), ("q", self.query)];
        let query: Vec<_> = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let values = call.api.list("/servers", &query).await?;
        let mut table = Table::new(["NAME", "STATUS", "HOST", "TAGS", "LAST SEEN", "ROLE", "ID"]);
        for value in &values {
            let server: Server = parsed(value.clone())?;
            let seen = if server.status == "online" { "now".to_owned() } else { ago(server.last_seen_at) };
            table.row([
                server.name.into(),
                Cell::word(server.status),
                server.host.into(),
                server.tags.join(" ").into(),
                seen.into(),
                server.role.unwrap_or_default().into(),
                server.id.to_string().into(),
            ]);
        }
        call.out.list(&table, &values)
    }
}

async fn show(call: &Call, wanted: &str) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let value = call.api.server_value(wanted).await?;
    if call.out.format == Format::Json {
        return call.out.json(&value);
    }
    let server: Server = parsed(value)?;
    let mut table = Table::new(["FIELD", "VALUE"]);
    for (name, text) in fields(&server) {
        let cell = if name == "status" { Cell::word(text) } else { Cell::new(text) };
        table.row([name.into(), cell]);
    }
    call.out.list(&table, &[])
}

fn fields(server: &Server) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("name", server.name.clone()),
        ("id", server.id.to_string()),
        ("status", server.status.clone()),
        ("host", server.port.map_or_else(|| server.host.clone(), |port| format!("{} (SSH port {port})", server.host))),
        ("tags", server.tags.join(" ")),
        ("description", server.description.replace('\n', " ")),
        ("owner", server.owner.as_ref().map(|owner| owner.username.clone()).unwrap_or_default()),
        ("role", server.role.clone().unwrap_or_default()),
        ("rights", server.rights.join(" ")),
        ("created", server.created_at.map(local).unwrap_or_default()),
        ("last seen", ago(server.last_seen_at)),
    ];
    if let Some(agent) = &server.agent {
        fields.extend([
            ("agent", format!("{} on {}", agent.version, agent.hostname)),
            ("system", format!("{}, {} {}, {} cores", agent.os, agent.kernel, agent.arch, agent.cpu_count)),
            ("allows", agent.capabilities.join(" ")),
        ]);
        if agent.conflict.as_ref().is_some_and(|conflict| !conflict.is_null()) {
            fields.push(("conflict", "another machine uses a key of this server".to_owned()));
        }
    }
    fields.retain(|(_, text)| !text.is_empty());
    fields
}

impl Add {
    async fn run(self, call: &Call) -> Result<(), Failure> {
        call.out.expect_no_csv()?;
        let key_file = self.key_file.as_deref().map(new_private).transpose()?;
        let body = json!({"name": self.name, "host": self.host, "port": self.port, "tags": self.tags,
            "description": self.description});
        let added = match call.api.post("/servers", &body).await {
            Ok(added) => added,
            Err(failure) => {
                key_file.into_iter().for_each(NewSecret::give_up);
                return Err(failure);
            }
        };
        let server: Server = parsed(added.clone())?;
        let mut sentence = format!("Added {} ({}).", clean(&server.name), server.id);
        if let (Some(key_file), Some(path)) = (key_file, &self.key_file) {
            create_key(call, &server, key_file).await?;
            let (name, service) = (clean(&server.name), call.api.service());
            let file = shell_word(&path.display().to_string());
            sentence.push_str(&format!(
                " Its key is in {file}. Copy it to {name} and run there:\n  curl -fsSL {service}/install.sh | sudo sh -s -- \
                 --key-file {file}"
            ));
        }
        call.out.done(&sentence, &added)
    }
}

/// Creates a key for a server that was just added, and keeps it in a file.
async fn create_key(call: &Call, server: &Server, file: NewSecret) -> Result<(), Failure> {
    let kept = match call.api.post("/api-keys", &json!({"server_id": server.id, "name": server.name})).await {
        Ok(key) => file.write(text_of(&key, "key")),
        Err(failure) => {
            file.give_up();
            Err(failure)
        }
    };
    if kept.is_err() {
        let (name, id, service) = (clean(&server.name), server.id, call.api.service());
        output::complain(&format!(
            "the server {name} ({id}) was added, but no key for it could be kept: create one on its page, \
             {service}/servers/{id}, or remove the server with `signalboxctl servers rm {id}` and add it again"
        ));
    }
    kept
}

async fn remove(call: &Call, wanted: &str, is_sure: bool) -> Result<(), Failure> {
    let server = call.api.server(wanted).await?;
    let name = clean(&server.name);
    if !is_sure {
        prompt::confirm(&format!(
            "Delete {name} ({}) with its history, keys, thresholds and alerts?",
            clean(&server.host)
        ))
        .await?;
    }
    let answer: Value = call.api.delete(&format!("/servers/{}", server.id)).await?;
    call.out.done(&format!("Deleted {name}."), &answer)
}
