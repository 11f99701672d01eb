//! The least that an actix-web server can do: what the service's REST figures are held against.

use std::net::SocketAddr;

use actix_web::{App, HttpServer, web};
use clap::Args;

#[derive(Debug, Args)]
pub struct HelloArgs {
    /// Worker threads; by default as many as actix-web starts by itself, which is what the service has too.
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
