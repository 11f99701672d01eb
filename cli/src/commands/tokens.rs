//! Tokens for programs.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::files::{NewSecret, new_private};
use super::refused::is_unknown;
use super::{Call, prompt};
use crate::api::types::ProgramToken;
use crate::api::{parsed, text_of};
use crate::context::Token;
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::{clean, shell_word};
use crate::output::time::{ago, local, parse_duration};

/// List, make and revoke tokens for programs
///
/// A token for programs cannot do this: it needs a login with user name and password.
#[derive(Debug, Args)]
pub struct Tokens {
    #[command(subcommand)]
    command: Option<TokensCommand>,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// List your tokens (the default)
    Ls,
    /// Make a token; it can never be more than you may do
    Add(Add),
    /// Revoke a token
    Rm {
        /// Name or id
        #[arg(value_name = "TOKEN")]
        token: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// What the token is for
    #[arg(value_name = "NAME")]
    name: String,
    /// Write the token to this new file, which only you can read; - is standard output
    #[arg(long, value_name = "FILE", required = true)]
    token_file: PathBuf,
    #[arg(long, value_name = "ROLE", default_value = "viewer",
        value_parser = ["viewer", "responder", "operator", "manager"])]
    role: String,
    /// A right of an operator (repeatable; none: all)
    #[arg(long = "right", value_name = "RIGHT", value_parser = ["containers", "commands", "logs", "terminal"])]
    rights: Vec<String>,
    /// Only for servers with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "servers")]
    tag: Option<String>,
    /// Only for this server, by name or id (repeatable)
    #[arg(long = "server", value_name = "SERVER")]
    servers: Vec<String>,
    /// When it expires: after a duration of at most 365d
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = parse_duration)]
    expires_in: std::time::Duration,
    /// A network that it may be used from, such as 10.0.0.0/8 (repeatable; none: all)
    #[arg(long = "network", value_name = "CIDR")]
    networks: Vec<String>,
}

impl Tokens {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        match self.command.unwrap_or(TokensCommand::Ls) {
            TokensCommand::Ls => list(call).await,
            TokensCommand::Add(add) => add.run(call).await,
            TokensCommand::Rm { token, yes } => remove(call, &token, yes).await,
        }
    }
}

async fn list(call: &Call) -> Result<(), Failure> {
    let values = call.api.list("/tokens", &[]).await?;
    let mut table = Table::new(["NAME", "ROLE", "SERVERS", "NETWORKS", "EXPIRES", "LAST USED", "FROM", "PREFIX", "ID"]);
    for value in &values {
        let token: ProgramToken = parsed(value.clone())?;
        let role = role_words(&token);
        table.row([
            token.name.into(),
            role.into(),
            scope_words(&token.scope).into(),
            network_words(&token.networks).into(),
            token.expires_at.map(local).unwrap_or_default().into(),
            ago(token.last_used_at).into(),
            token.last_used_address.unwrap_or_default().into(),
            token.prefix.into(),
            Cell::new(token.id.to_string()),
        ]);
    }
    call.out.list(&table, &values)
}

/// An operator may have some of the rights only.
fn role_words(token: &ProgramToken) -> String {
    if token.rights.is_empty() { token.role.clone() } else { format!("{} ({})", token.role, token.rights.join(", ")) }
}

fn network_words(networks: &[String]) -> String {
    if networks.is_empty() { "all".to_owned() } else { networks.join(", ") }
}

fn scope_words(scope: &Value) -> String {
    if let Some(ids) = scope.get("server_ids").and_then(Value::as_array) {
        return format!("{} chosen", ids.len());
    }
    match text_of(scope, "tag") {
        "" => "all".to_owned(),
        tag => format!("tag {tag}"),
    }
}

impl Add {
    async fn run(self, call: &Call) -> Result<(), Failure> {
        call.out.expect_no_csv()?;
        let scope = self.scope(call).await?;
        let millis = i64::try_from(self.expires_in.as_millis()).unwrap_or(i64::MAX);
        let mut body = json!({"name": self.name, "role": self.role, "scope": scope, "networks": self.networks,
            "expires_at": Timestamp::now().plus_millis(millis)});
        if let (Some(fields), false) = (body.as_object_mut(), self.rights.is_empty()) {
            fields.insert("rights".to_owned(), json!(self.rights));
        }
        // Before it is made: a token that cannot be kept would be lost.
        let file = if self.token_file == Path::new("-") { None } else { Some(new_private(&self.token_file)?) };
        let mut made = match call.api.post("/tokens", &body).await {
            Ok(made) => made,
            Err(failure) => {
                file.into_iter().for_each(NewSecret::give_up);
                return Err(not_made(failure));
            }
        };
        let token = match token_of(&mut made) {
            Ok(token) => token,
            Err(failure) => {
                file.into_iter().for_each(NewSecret::give_up);
                return Err(failure);
            }
        };
        match file {
            None => call.out.line(token.reveal()).map_err(|failure| not_kept(&failure, &made)),
            Some(file) => {
                file.write(token.reveal()).map_err(|failure| not_kept(&failure, &made))?;
                let sentence = format!("Made {}. Its token is in {}.", clean(&self.name), self.token_file.display());
                call.out.done(&sentence, &made)
            }
        }
    }

    async fn scope(&self, call: &Call) -> Result<Value, Failure> {
        if let Some(tag) = &self.tag {
            return Ok(json!({"tag": tag}));
        }
        if self.servers.is_empty() {
            return Ok(json!({"all": true}));
        }
        let mut ids = Vec::new();
        for server in &self.servers {
            ids.push(call.api.server(server).await?.id);
        }
        Ok(json!({"server_ids": ids}))
    }
}

/// Why no token was made, as far as that is known: the answer may have got lost, and the token with it.
fn not_made(failure: Failure) -> Failure {
    if is_unknown(&failure) {
        failure.and("it is not known whether the token was made: `signalboxctl tokens` lists all")
    } else {
        failure
    }
}

/// A token that nobody has is valid all the same: that nobody reads it is no success, unlike for other output.
fn not_kept(failure: &Failure, made: &Value) -> Failure {
    let id = clean(text_of(made, "id"));
    let revoke = format!("signalboxctl tokens rm {}", shell_word(&id));
    Failure::failed(format!("{failure}; the token was made and may be lost: revoke it with `{revoke}`"))
}

/// Takes the token out of what was made. It is one word of visible characters, or else it is none.
fn token_of(made: &mut Value) -> Result<Token, Failure> {
    let token = made.as_object_mut().and_then(|fields| fields.remove("token"));
    let text = token.as_ref().and_then(Value::as_str).unwrap_or_default();
    Token::parse(text).map_err(|_| Failure::failed("the service sent no token"))
}

async fn remove(call: &Call, wanted: &str, is_sure: bool) -> Result<(), Failure> {
    let tokens = call.api.list("/tokens", &[]).await?;
    let is_wanted = |token: &&Value| text_of(token, "id") == wanted || text_of(token, "name") == wanted;
    let found: Vec<ProgramToken> = tokens.iter().filter(is_wanted).cloned().map(parsed).collect::<Result<_, _>>()?;
    let token = match found.as_slice() {
        [token] => token,
        [] => return Err(Failure::failed(format!("there is no token {wanted:?}: `signalboxctl tokens` lists all"))),
        many => {
            return Err(Failure::usage(format!("{} tokens have the name {wanted:?}: name one by its id", many.len())));
        }
    };
    let name = clean(&token.name);
    if !is_sure {
        prompt::confirm(&format!("Revoke {name} ({})?", clean(&token.prefix))).await?;
    }
    let answer = call.api.delete(&format!("/tokens/{}", token.id)).await?;
    call.out.done(&format!("Revoked {name}."), &answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_word_of_visible_characters_is_a_token() {
        let mut made = json!({"name": "grafana", "token": "sbt_secret"});

        assert_eq!(token_of(&mut made).unwrap().reveal(), "sbt_secret");
        assert_eq!(made, json!({"name": "grafana"}), "nothing prints it with the rest");
        for wrong in [json!("sbt_\u{1b}]0;title\u{7}"), json!("two words"), json!(""), json!(7), Value::Null] {
            let refusal = token_of(&mut json!({ "token": wrong })).unwrap_err().to_string();
            assert_eq!(refusal, "the service sent no token", "{wrong}");
        }
    }
}
