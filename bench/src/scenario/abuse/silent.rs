//! Open agent sockets that never send anything.

use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use super::{AbuseArgs, STRANGER};
use crate::agent::AgentSocket;
use crate::fixture::Fixture;
use crate::report::{Report, megabytes, progress};
use crate::stats::Latencies;

pub async fn attack(fixture: &Fixture, args: &AbuseArgs) -> anyhow::Result<Report> {
    progress(format_args!("{} silent sockets", args.silent));
    let address = fixture.service.address();
    let mut sockets = Vec::with_capacity(args.silent);
    for _ in 0..args.silent {
        sockets.push(silent(address).await?);
    }
    let (mut latencies, mut refused, mut agents) = (Latencies::default(), 0, Vec::new());
    for enrolled in &fixture.fleet {
        let start = Instant::now();
        match AgentSocket::connect(address, enrolled).await {
            Ok(agent) => {
                latencies.record(start.elapsed());
                agents.push(agent);
            }
            Err(error) => {
                progress(format_args!("an agent was not let in: {error:#}"));
                refused += 1;
            }
        }
    }

    let mut report = Report::new(format!("abuse: {} silent sockets of one address", args.silent));
    report.note("agents let in", format!("{} of {}", agents.len(), args.agents));
    if let Some(summary) = latencies.summary() {
        report.note("from connecting to let in", summary);
    }
    report.note("RSS, MB", format!("{:.1}", megabytes(fixture.service.memory()?.rss)));
    report.must_be_zero("agents not let in at once", refused);
    Ok(report)
}

/// An agent's socket that is upgraded, or about to be, and says nothing.
async fn silent(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((STRANGER, 0)))?;
    let mut stream = socket.connect(address).await?;
    let request = "GET /api/v1/agents/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}
