//! The services that the user signed in to.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::api::Api;
use crate::cli::Options;
use crate::context::{Credential, Store, Target, no_context};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::{self, Out};

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// List the contexts; a star marks the current one
    Ls,
    /// Make a context the current one
    Use {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Forget a context, and end its login
    Rm {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl ContextCommand {
    pub async fn run(self, options: Options) -> Result<(), Failure> {
        let out = Out::new(options.output, options.color);
        let store = Store::of_user()?;
        match self {
            Self::Ls => list(&store, &out),
            Self::Use { name } => choose(&store, &out, name).await,
            Self::Rm { name } => remove(store, &out, name).await,
        }
    }
}

fn list(store: &Store, out: &Out) -> Result<(), Failure> {
    let contexts = store.read()?;
    let mut table = Table::new(["", "NAME", "URL", "CREDENTIAL"]);
    let mut values = Vec::new();
    for (name, context) in &contexts.contexts {
        let is_current = contexts.current.as_ref() == Some(name);
        let credential = context.credential.words();
        let url = context.url.to_string();
        values.push(json!({"name": name, "url": url, "credential": credential, "current": is_current}));
        let mark = if is_current { "*" } else { "" };
        table.row([Cell::new(mark), name.as_str().into(), url.into(), credential.into()]);
    }
    out.list(&table, &values)
}

async fn choose(store: &Store, out: &Out, name: String) -> Result<(), Failure> {
    let locked = store.lock().await?;
    let mut contexts = locked.read()?;
    if !contexts.contexts.contains_key(&name) {
        return Err(no_context(&name, &contexts));
    }
    let sentence = format!("{name} is the current context.");
    let value = json!({"current": name});
    contexts.current = Some(name);
    locked.write(&contexts)?;
    out.done(&sentence, &value)
}

async fn remove(store: Store, out: &Out, name: String) -> Result<(), Failure> {
    let context = match store.read()?.contexts.remove(&name) {
        Some(context) => context,
        None => return Err(no_context(&name, &store.read()?)),
    };
    let is_login = matches!(context.credential, Credential::Login { .. });
    // First the service: a login that is only forgotten here would work for a week.
    if is_login {
        let target = Target { name: Some(name.clone()), context };
        let ended = match Api::new(target, Some(store.clone())) {
            Ok(api) => api.act("/auth/logout", &[]).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            output::complain(&format!("the login may not have ended at the service: {failure}"));
        }
    }
    let locked = store.lock().await?;
    let mut contexts = locked.read()?;
    contexts.contexts.remove(&name);
    contexts.current = contexts.current.filter(|current| *current != name);
    locked.write(&contexts)?;
    let rest = if is_login { "" } else { " Its token works until it expires or is revoked." };
    out.done(&format!("Forgot {name}.{rest}"), &json!({"removed": name, "current": current_of(contexts.current)}))
}

fn current_of(current: Option<String>) -> Value {
    current.map_or(Value::Null, Value::String)
}
