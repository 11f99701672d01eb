//! Which modules may name which crates and modules of the outside, and violations of it in the code.

use super::*;

/// Files under `within`, except those under `except`, name none of `names`.
pub struct ImportRule {
    pub rule: &'static str,
    pub within: &'static [&'static str],
    pub except: &'static [&'static str],
    pub names: &'static [&'static str],
}

/// Modules that only compute: same input, same output. Time is passed in.
const PURE: &[&str] = &[
    "src/address",
    "src/alerts/containers",
    "src/alert_words",
    "src/alerts/measurement",
    "src/alerts/rule",
    "src/alerts/silence",
    "src/alerts/text",
    "store/src/audit",
    "src/auth/machines",
    "src/clock/agent",
    "src/clock/belief",
    "src/clock/verdict",
    "cli/src/commands/exec/grouped",
    "cli/src/commands/logs/merge",
    "cli/src/commands/logs/recent",
    "cli/src/commands/shell/escape",
    "cli/src/commands/top/keys",
    "cli/src/commands/top/model",
    "cli/src/output/spark",
    "cli/src/output/table",
    "cli/src/signing/order",
    "cli/src/signing/rsa",
    "src/demo/cast",
    "src/demo/containers",
    "src/demo/course",
    "src/demo/gauges",
    "src/demo/incidents",
    "src/demo/journal",
    "src/demo/noise",
    "src/demo/processes",
    "src/demo/services",
    "src/demo/shell",
    "src/events/availability",
    "src/events/beats",
    "src/notify/format",
    "src/notify/guard",
    "src/notify/limits",
    "src/notify/message",
    "src/metrics/exposition",
    "src/metrics/query/catalog",
    "src/metrics/query/plan",
    "history/src",
    "src/networks",
    "signing/src",
    "src/shares/line",
    "src/shares/seating",
    "src/shares/share",
    "src/shares/turns",
];

pub const IMPORTS: &[ImportRule] = &[
    ImportRule {
        rule: "only the store names the database",
        within: &["src", "history/src", "agent/src", "cli/src", "protocol/src"],
        except: &[],
        names: &["sea_orm", "sea_orm_migration", "sqlx", "entity", "migration"],
    },
    ImportRule {
        rule: "only src/ws names actix_web_actors",
        within: &["src"],
        except: &["src/ws"],
        names: &["actix_web_actors"],
    },
    ImportRule {
        rule: "only src/http names paperclip",
        within: &["src"],
        except: &["src/http"],
        names: &["paperclip"],
    },
    ImportRule {
        rule: "only src/http, src/ws and what runs them name actix_web",
        within: &["src"],
        except: &["src/http", "src/ws", "src/startup", "src/demo", "src/observe"],
        names: &["actix_web", "actix_http"],
    },
    ImportRule {
        rule: "locks are parking_lot's, which no panic poisons",
        within: &["src", "store/src", "agent/src", "cli/src", "bench/src"],
        except: &[],
        names: &["std::sync::Mutex", "std::sync::MutexGuard", "std::sync::RwLock"],
    },
    ImportRule {
        rule: "the protocol knows no other part",
        within: &["protocol/src"],
        except: &[],
        names: &[
            "signalbox",
            "signalbox_agent",
            "signalbox_history",
            "signalbox_store",
            "entity",
            "migration",
            "bench",
        ],
    },
    ImportRule {
        rule: "the history knows the protocol and nothing of the service",
        within: &["history/src"],
        except: &[],
        names: &["signalbox", "signalbox_agent", "signalbox_store", "entity", "migration", "bench"],
    },
    ImportRule {
        rule: "the store knows nothing of the service",
        within: &["store/src"],
        except: &[],
        names: &["signalbox", "signalbox_history", "bench", "actix", "actix_web", "actix_web_actors", "paperclip"],
    },
    ImportRule {
        rule: "the agent knows the protocol and nothing of the service",
        within: &["agent/src"],
        except: &[],
        names: &[
            "signalbox",
            "signalbox_history",
            "signalbox_store",
            "entity",
            "migration",
            "sea_orm",
            "actix",
            "actix_web",
        ],
    },
    ImportRule {
        rule: "signalboxctl knows the protocol, and the service only by its API",
        within: &["cli/src"],
        except: &[],
        names: &[
            "signalbox",
            "signalbox_agent",
            "signalbox_history",
            "signalbox_store",
            "entity",
            "migration",
            "bench",
        ],
    },
    ImportRule {
        rule: "a pure module reads no clock, does no I/O and is no actor",
        within: PURE,
        except: &[],
        names: &[
            "Utc::now",
            "Local::now",
            "Instant",
            "SystemTime",
            "std::fs",
            "std::net",
            "tokio",
            "actix",
            "chrono::Utc::now",
            "std::time::Instant",
            "std::time::SystemTime",
        ],
    },
];

impl ImportRule {
    pub fn violations(&self, source: &Source) -> Vec<String> {
        if !is_under(&source.path, self.within) || is_under(&source.path, self.except) {
            return Vec::new();
        }
        let named = source.paths().into_iter().filter(|named| self.names.iter().any(|name| begins(&named.path, name)));
        named.map(|named| violation(source, named.line, &format!("{} ({})", self.rule, named.path))).collect()
    }
}
