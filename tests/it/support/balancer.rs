//! A real HAProxy in front of several instances, which checks whether each of them is ready.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;

use tempfile::TempDir;

use super::command_line::Launched;
use super::port::Port;
use super::{Client, eventually};

/// The path of its own status.
const STATUS: &str = "/balancer";

pub struct Balancer {
    pub address: SocketAddr,
    /// Calls relative to `/api/v1`.
    pub client: Client,
    root: Client,
    _program: Launched,
    _config: TempDir,
    _port: Port,
}

impl Balancer {
    /// Spreads calls over these instances. A call is tried elsewhere only when no connection could be made.
    pub async fn over(instances: &[SocketAddr]) -> Self {
        let (port, config) = (Port::reserve(), TempDir::new().unwrap());
        let address = port.address;
        let path = config.path().join("haproxy.cfg");
        fs::write(&path, configuration(address, instances)).unwrap();
        let mut command = Command::new("/usr/sbin/haproxy");
        command.env_clear().arg("-db").arg("-f").arg(path);
        let program = Mutex::new(Launched::start(command));
        eventually("haproxy serves", async || {
            let has_ended = program.lock().unwrap().has_ended();
            assert!(!has_ended, "haproxy ended: {}", program.lock().unwrap().stderr());
            tokio::net::TcpStream::connect(address).await.is_ok().then_some(())
        })
        .await;
        let client = Client::new(format!("http://{address}/api/v1"));
        let root = Client::new(format!("http://{address}"));
        let program = program.into_inner().unwrap();
        Self { address, client, root, _program: program, _config: config, _port: port }
    }

    /// Waits until it sends calls to an instance, or stops doing so.
    pub async fn until(&self, instance: usize, is_up: bool) {
        let (name, wanted) = (format!("instances,instance-{instance},"), if is_up { "UP" } else { "DOWN" });
        eventually(&format!("the balancer sees {name} {wanted}"), async || {
            let status = self.root.get(format!("{STATUS};csv")).send().await.text;
            let line = status.lines().find(|line| line.starts_with(&name)).map(str::to_owned);
            // The eighteenth column; during a change it also shows the progress.
            let state = line?.split(',').nth(17)?.to_owned();
            (state == wanted).then_some(())
        })
        .await;
    }
}

/// An instance that has ended refuses connections, and a slow one is not away: so no instance is given up during the time of an
/// answer.
fn configuration(address: SocketAddr, instances: &[SocketAddr]) -> String {
    let servers =
        instances.iter().enumerate().map(|(index, instance)| format!("  server instance-{index} {instance}\n"));
    format!(
        "defaults
  mode http
  timeout connect 30s
  timeout check 30s
  timeout client 120s
  timeout server 120s
  timeout tunnel 1h
  option redispatch 1
  retries 3
frontend all
  bind {address}
  stats enable
  stats uri {STATUS}
  default_backend instances
backend instances
  balance roundrobin
  option httpchk GET /readyz
  default-server check inter 200ms fall 1 rise 1
{}",
        servers.collect::<String>()
    )
}
