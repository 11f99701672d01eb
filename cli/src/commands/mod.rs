//! One module per verb.

pub mod alerts;
pub mod approvals;
pub mod browser;
pub mod containers;
pub mod context;
pub mod exec;
pub mod files;
pub mod interrupts;
pub mod login;
pub mod logs;
pub mod mcp;
pub mod metrics;
pub mod pages;
pub mod prompt;
pub mod recordings;
pub mod refused;
pub mod servers;
pub mod shell;
pub mod tokens;
pub mod top;

use std::sync::Arc;

use crate::api::Api;
use crate::cli::{Cli, Options, Verb};
use crate::context::{Store, Wishes};
use crate::error::Failure;
use crate::output::Out;

/// What a command needs to ask and to answer.
pub struct Call {
    pub api: Arc<Api>,
    pub out: Out,
}

impl Call {
    fn new(options: Options) -> Result<Self, Failure> {
        let out = Out::new(options.output, options.color);
        // Looked for only if the environment does not say it all: not every container has a home.
        let mut store = None;
        let read = || store.insert(Store::of_user()?).read();
        let target = Wishes::new(options.context, options.ca_file).target(read)?;
        Ok(Self { api: Arc::new(Api::new(target, store)?), out })
    }
}

/// Does what the command line says.
pub async fn run(cli: Cli) -> Result<(), Failure> {
    match cli.verb {
        Verb::Login(login) => login.run(cli.options).await,
        Verb::Context(command) => command.run(cli.options).await,
        Verb::Completions(completions) => completions.run(),
        Verb::Man(man) => man.run(),
        Verb::Servers(servers) => servers.run(&Call::new(cli.options)?).await,
        Verb::Exec(exec) => exec.run(&Call::new(cli.options)?).await,
        Verb::Recordings(recordings) => recordings.run(&Call::new(cli.options)?).await,
        Verb::Shell(shell) => shell.run(&Call::new(cli.options)?).await,
        Verb::Top(top) => top.run(&Call::new(cli.options)?).await,
        Verb::Logs(logs) => logs.run(&Call::new(cli.options)?).await,
        Verb::Containers(containers) => containers.run(&Call::new(cli.options)?).await,
        Verb::Alerts(alerts) => alerts.run(&Call::new(cli.options)?).await,
        Verb::Approvals(approvals) => approvals.run(&Call::new(cli.options)?).await,
        Verb::Metrics(metrics) => metrics.run(&Call::new(cli.options)?).await,
        Verb::Mcp(mcp) => mcp.run(&Call::new(cli.options)?).await,
        Verb::Tokens(tokens) => tokens.run(&Call::new(cli.options)?).await,
    }
}
