//! The HTTP load generator `wrk`, from Debian's package of that name.

use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;

/// What one run of `wrk` printed.
#[derive(Debug, Clone, PartialEq)]
pub struct WrkResult {
    pub requests_per_second: f64,
    /// Answers other than 2xx and 3xx, and broken connections.
    pub errors: u64,
}

/// Requests `url` over kept-alive connections as fast as it can, on one thread: the service needs the other cores.
pub async fn run(url: &str, connections: u32, duration: Duration, token: &str) -> anyhow::Result<WrkResult> {
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", &connections.to_string()])
        .args(["--duration", &format!("{}s", duration.as_secs().max(1))])
        .args(["--header", &format!("Authorization: Bearer {token}"), url])
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run wrk; it is in the package `wrk`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "wrk ended with {}: {text}", output.status);
    parse(&text).with_context(|| format!("wrk printed another shape: {text}"))
}

fn parse(text: &str) -> Option<WrkResult> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let requests_per_second = value("Requests/sec:")?.parse().ok()?;
    let bad_answers = match value("Non-2xx or 3xx responses:") {
        Some(count) => count.parse().ok()?,
        None => 0,
    };
    // `connect 0, read 3, write 0, timeout 0`
    let broken = match value("Socket errors:") {
        Some(counts) => counts.split(',').filter_map(|part| part.split_whitespace().last()?.parse::<u64>().ok()).sum(),
        None => 0,
    };
    Some(WrkResult { requests_per_second, errors: bad_answers + broken })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_run_is_read() {
        let text = "\
Running 5s test @ http://127.0.0.1:8000/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   301.12us  120.40us   4.11ms   83.41%
    Req/Sec   103.27k     4.10k  110.21k    72.00%
  513630 requests in 5.00s, 64.17MB read
Requests/sec: 102711.55
Transfer/sec:     12.83MB
";

        assert_eq!(parse(text), Some(WrkResult { requests_per_second: 102_711.55, errors: 0 }));
    }

    #[test]
    fn errors_are_added_up() {
        let text = "\
  Socket errors: connect 1, read 2, write 0, timeout 4
  Non-2xx or 3xx responses: 10
Requests/sec:   5.00
";

        assert_eq!(parse(text), Some(WrkResult { requests_per_second: 5.0, errors: 17 }));
        assert_eq!(parse("unable to connect"), None);
    }
}
