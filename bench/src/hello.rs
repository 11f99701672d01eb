//! The simplest actix-web server, which the service's REST figures are compared with.

use std::net::SocketAddr;
use std::path::Path;

use actix_web::{App, HttpServer, web};
use clap::Args;
use tokio::process::Command;

use crate::child::ListeningChild;

#[derive(Debug, Args)]
pub struct HelloArgs {
    /// Worker threads. Defaults to as many as actix-web starts, like the service.
    #[arg(long)]
    pub workers: Option<usize>,
}

/// Answers `hello` on a free port of loopback until it is ended, and says where like the service does.
pub fn serve(args: &HelloArgs) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        let mut server = HttpServer::new(|| App::new().default_service(web::to(|| async { "hello" })))
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        if let Some(workers) = args.workers {
            server = server.workers(workers);
        }
        for address in server.addrs() {
            println!("listening on http://{address}");
        }
        Ok(server.run().await?)
    })
}

/// Starts this program again as that server, with its log below `work_dir`.
pub async fn start(work_dir: &Path, workers: Option<usize>) -> anyhow::Result<ListeningChild> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("hello");
    if let Some(workers) = workers {
        command.args(["--workers", &workers.to_string()]);
    }
    ListeningChild::start(command, &work_dir.join("hello.log")).await
}
