//! The meaning of each of the service's own metrics: the `HELP` lines of `/metrics`, and the tables of
//! `docs/metrics.md`.

/// What can rise and fall, by name.
pub const GAUGES: [(&str, &str); 14] = [
    ("signalbox_agents_connected", "Agents connected to this instance"),
    ("signalbox_clock_doubted", "1 while agents' clocks contradict the service's clock"),
    ("signalbox_dashboards_connected", "WebSocket subscriptions of pages on this instance"),
    ("signalbox_database_up", "1 if PostgreSQL answers and accepts writes"),
    ("signalbox_disk_free_bytes", "Free space on the disk of the embedded database"),
    ("signalbox_history_uncompacted_days", "Days of servers whose blocks are not merged yet"),
    ("signalbox_history_unsealed_hours", "Hours of servers whose samples are not sealed into blocks yet"),
    ("signalbox_instances_alive", "Instances of the cluster that are alive"),
    ("signalbox_memory_budget_bytes", "Memory that the service may use (--memory-budget)"),
    ("signalbox_memory_over_budget", "1 while the service uses more memory than its budget"),
    ("signalbox_memory_resident_bytes", "Memory that the service uses"),
    ("signalbox_shards_held", "Shards that this instance holds"),
    ("signalbox_topics_watched_elsewhere", "Topics of this instance that pages on other instances watch"),
    ("signalbox_topics_watched_here", "Topics that pages on this instance watch"),
];

/// What only rises, by name.
pub const COUNTERS: [(&str, &str); 39] = [
    (
        "signalbox_agent_clock_moves_total",
        "Times that an agent's clock was found off by more than 5 s, or moved by as much",
    ),
    ("signalbox_agent_events_refused_total", "Events of agents that were malformed or beyond an agent's limit"),
    ("signalbox_agent_messages_unasked_total", "Messages of agents that answer no pending request"),
    ("signalbox_agent_messages_unknown_total", "Messages of agents of an unknown type"),
    ("signalbox_alert_inputs_skipped_total", "Samples that alerts did not evaluate because too many were waiting"),
    ("signalbox_alert_writes_failed_total", "Changes of alerts that could not be written and are retried"),
    ("signalbox_batches_deferred_total", "Batches of samples that had to wait because the service was busy"),
    ("signalbox_bus_bytes_sent_total", "Bytes sent to other instances over NATS, by kind"),
    ("signalbox_bus_messages_lost_total", "Messages between instances that were lost"),
    ("signalbox_bus_messages_sent_total", "Messages sent to other instances over NATS, by kind"),
    ("signalbox_clock_pauses_total", "Times that the service or its machine was suspended"),
    ("signalbox_clock_steps_total", "Times that the machine's clock was set"),
    (
        "signalbox_command_bytes_dropped_total",
        "Bytes of stored commands and output deleted for --quota-command-storage",
    ),
    ("signalbox_commits_failed_total", "Commits of samples that failed; their agents send them again"),
    (
        "signalbox_exchange_frames_dropped_total",
        "Live messages that were not sent to other instances because too many were waiting, by kind",
    ),
    (
        "signalbox_exchange_servers_refused_total",
        "Servers of other instances that did not fit into this instance's view",
    ),
    ("signalbox_feed_frames_dropped_total", "Live metrics dropped because a page reads too slowly"),
    ("signalbox_history_damaged_total", "Blocks and samples of the history that could not be read"),
    ("signalbox_history_failures_total", "Steps of the history's maintenance that failed and are retried"),
    ("signalbox_history_hours_sealed_total", "Hours of servers whose samples were sealed into blocks"),
    ("signalbox_history_names_left_out_total", "Names left out of samples because a server has too many"),
    ("signalbox_history_orphans_removed_total", "Deleted servers whose history was removed"),
    ("signalbox_history_samples_left_out_total", "Samples that the history could not store"),
    (
        "signalbox_history_series_dropped_total",
        "Series left out of the history because a server has too many in an hour, or its agent described too many",
    ),
    ("signalbox_http_requests_total", "HTTP requests, by status"),
    ("signalbox_interest_refused_total", "Subscriptions of other instances beyond the limit"),
    ("signalbox_memory_batches_held_back_total", "Batches of backlog acknowledged late because memory was over budget"),
    ("signalbox_memory_reads_refused_total", "Reads answered 503 because memory was over budget"),
    ("signalbox_memory_reads_waited_total", "Reads that waited because memory was over budget"),
    ("signalbox_notifications_failed_total", "Attempts at notifications that failed, by kind of channel"),
    ("signalbox_notifications_sent_total", "Notifications delivered, by kind of channel"),
    ("signalbox_samples_recorded_total", "Samples stored"),
    ("signalbox_samples_refused_total", "Samples refused because their time is in the future or they are too large"),
    ("signalbox_server_events_dropped_total", "Events of servers dropped because too many were waiting"),
    ("signalbox_shares_evicted_total", "Connections closed in favour of others when a pool was full, by pool"),
    ("signalbox_shares_refused_total", "Requests, connections and output refused because a pool was full, by pool"),
    ("signalbox_subscriber_messages_unknown_total", "Messages of pages of an unknown type"),
    ("signalbox_subscribers_evicted_total", "Subscriptions of pages ended because they read too slowly"),
    ("signalbox_transaction_retries_total", "Database transactions retried after contention"),
];

/// What is spread over buckets, in seconds, by name.
pub const HISTOGRAMS: [(&str, &str); 4] = [
    ("signalbox_commit_seconds", "Time to commit a group of samples"),
    ("signalbox_history_step_seconds", "Time of a step of the history's maintenance"),
    ("signalbox_http_request_seconds", "Time to answer HTTP requests, by route"),
    ("signalbox_share_wait_seconds", "Time that work waited for its share of a pool, by pool"),
];

/// Describes all metrics to the installed recorder. No other code describes metrics.
pub fn describe() {
    for (name, meaning) in GAUGES {
        metrics::describe_gauge!(name, meaning);
    }
    for (name, meaning) in COUNTERS {
        metrics::describe_counter!(name, meaning);
    }
    for (name, meaning) in HISTOGRAMS {
        metrics::describe_histogram!(name, meaning);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn described() -> BTreeSet<String> {
        GAUGES.iter().chain(&COUNTERS).chain(&HISTOGRAMS).map(|(name, _)| (*name).to_owned()).collect()
    }

    fn source_files(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source_files(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }

    /// Every literal with our prefix in the code that counts; the metrics of servers have other names.
    fn counted() -> BTreeSet<String> {
        let mut files = Vec::new();
        for root in ["src", "store/src"] {
            source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root), &mut files);
        }
        let texts = files
            .iter()
            .filter(|path| !path.ends_with("observe/describe.rs"))
            .map(|path| fs::read_to_string(path).unwrap());
        let counting =
            texts.filter(|text| ["counter!(", "gauge!(", "histogram!("].iter().any(|name| text.contains(name)));
        let mut names = BTreeSet::new();
        for text in counting {
            let literals = text.split('"').skip(1).step_by(2);
            names.extend(literals.filter(|literal| literal.starts_with("signalbox_")).map(str::to_owned));
        }
        names
    }

    #[test]
    fn every_metric_is_described_and_nothing_else() {
        assert_eq!(described(), counted());
    }
}
