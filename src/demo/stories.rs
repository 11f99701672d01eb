//! The thresholds of the simulated servers, the alerts that they raised, what became of them, and silences.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::cast::Machine;
use super::incidents::{
    DEPLOYED, ERRORS_LASTED, LAST_OOM, LEAK_HOURS, OFFLINE_SINCE, drive_crossed, filled_at, leak_crossed,
};
use super::past::Simulated;
use super::{Scene, account, id_at};
use crate::alert_words::{Comparison, MetricType, Severity, Status};
use crate::alerts::measurement::Unit;
use crate::alerts::text::{AlertSubject, Measured, fired};
use crate::audit::Actor;
use crate::change::Change;
use crate::effects;
use crate::store::{
    Alert, AlertAudience, AlertChange, AlertEvent, Reach, SilenceTerms, StoreError, Threshold, ThresholdFilter,
    ThresholdTerms, Visibility, WeeklySchedule,
};

/// A threshold of the demo, for the servers with a tag.
struct Rule {
    tag: &'static str,
    metric: MetricType,
    limit: f64,
    lasts_seconds: i32,
    severity: Severity,
}

const RULES: [Rule; 9] = [
    Rule { tag: "logs", metric: MetricType::Disk, limit: 90.0, lasts_seconds: 0, severity: Severity::Critical },
    Rule { tag: "db", metric: MetricType::Disk, limit: 85.0, lasts_seconds: 0, severity: Severity::Critical },
    Rule { tag: "db", metric: MetricType::Cpu, limit: 90.0, lasts_seconds: 600, severity: Severity::Warning },
    Rule { tag: "app", metric: MetricType::Memory, limit: 90.0, lasts_seconds: 300, severity: Severity::Warning },
    Rule {
        tag: "storage",
        metric: MetricType::Temperature,
        limit: 50.0,
        lasts_seconds: 60,
        severity: Severity::Warning,
    },
    Rule { tag: "edge", metric: MetricType::Offline, limit: 120.0, lasts_seconds: 0, severity: Severity::Critical },
    Rule {
        tag: "queue",
        metric: MetricType::ContainerState,
        limit: 2.0,
        lasts_seconds: 0,
        severity: Severity::Warning,
    },
    Rule { tag: "web", metric: MetricType::Series, limit: 10.0, lasts_seconds: 60, severity: Severity::Critical },
    Rule { tag: "web", metric: MetricType::Cpu, limit: 92.0, lasts_seconds: 300, severity: Severity::Warning },
];

/// The series of the rule about one.
const ERRORS: &str = "http_errors";

/// The sensor of the rule about temperatures.
const DRIVE: &str = "sda";

/// An alert. Times are hours since the demo began.
struct Story {
    server: &'static str,
    metric: MetricType,
    opened: f64,
    value: f64,
    peak: f64,
    worst: Option<&'static str>,
    /// How long after it opened the colleague acknowledged it, in hours, and the colleague's note.
    acknowledged: Option<(f64, &'static str)>,
    resolved: Option<f64>,
}

fn stories() -> Vec<Story> {
    let leaks = (0..3).map(|life| {
        let ago = f64::from(life) * LEAK_HOURS;
        let note = match life {
            0 => "The invoice worker leaks again. Its next release has the fix; until then the kernel restarts it.",
            1 => "Known: the invoice worker keeps every PDF in memory. Reported to the team.",
            _ => "Looking into it.",
        };
        Story {
            server: "app-eu-2",
            metric: MetricType::Memory,
            opened: leak_crossed(90.0) - ago + 0.1,
            value: 90.2,
            peak: 96.4,
            worst: None,
            acknowledged: Some((0.2 + 0.3 * f64::from(life), note)),
            resolved: Some(LAST_OOM - ago + 0.01),
        }
    });
    let releases = [("web-eu-1", 61.4), ("web-eu-2", 63.2)].map(|(server, peak)| Story {
        server,
        metric: MetricType::Series,
        opened: DEPLOYED + 0.025,
        value: 58.7,
        peak,
        worst: None,
        acknowledged: Some((0.03, "2026.11.4 cannot reach the stock service. Rolling back to 2026.11.3.")),
        resolved: Some(DEPLOYED + ERRORS_LASTED + 0.02),
    });
    let now = [
        Story {
            server: "logs-1",
            metric: MetricType::Disk,
            opened: filled_at(90.0),
            value: 90.1,
            peak: 96.2,
            worst: Some("/var/log"),
            acknowledged: None,
            resolved: None,
        },
        Story {
            server: "nas",
            metric: MetricType::Temperature,
            opened: drive_crossed(50.0) + 0.15,
            value: 51.1,
            peak: 53.4,
            worst: None,
            acknowledged: None,
            resolved: None,
        },
        Story {
            server: "edge-sao-1",
            metric: MetricType::Offline,
            opened: OFFLINE_SINCE + 0.034,
            value: 121.0,
            peak: -OFFLINE_SINCE * 3_600.0,
            worst: None,
            acknowledged: Some((0.4, "The provider has lost power in this rack and works on it: ticket 48213.")),
            resolved: None,
        },
    ];
    leaks.chain(releases).chain(now).collect()
}

/// Writes thresholds, alerts and silences, and starts to evaluate.
pub async fn write(scene: &Scene<'_>) -> Result<(), StoreError> {
    let thresholds = thresholds(scene).await?;
    for story in stories() {
        let found = scene.servers.iter().find(|(_, machine)| machine.name == story.server);
        let Some(server) = found else { continue };
        let is_its = |threshold: &&Threshold| {
            threshold.metric_type == story.metric.word() && threshold.tag.as_deref() == Some(server.1.role.word())
        };
        if let Some(threshold) = thresholds.iter().find(is_its) {
            tell(scene, &story, server, threshold).await?;
        }
    }
    silences(scene).await?;
    effects::commit(scene.state, Change::RulesChanged { server_id: None, owner_id: scene.owner_id }).await;
    Ok(())
}

/// The thresholds. Those that an unfinished start has left are used again.
async fn thresholds(scene: &Scene<'_>) -> Result<Vec<Threshold>, StoreError> {
    let visible = Visibility::of_owner(scene.owner_id);
    let known = scene.state.store.list_thresholds(&visible, ThresholdFilter::default(), account::ALL).await?;
    let mut all = Vec::new();
    for Rule { tag, metric, limit, lasts_seconds, severity } in RULES {
        let is_it = |it: &&Threshold| it.metric_type == metric.word() && it.tag.as_deref() == Some(tag);
        if let Some(left) = known.items.iter().find(is_it) {
            all.push(left.clone());
            continue;
        }
        let terms = ThresholdTerms {
            reach: Reach { server_id: None, tag: Some(tag.to_owned()) },
            metric_type: metric.word().to_owned(),
            series: (metric == MetricType::Series).then(|| ERRORS.to_owned()),
            threshold_value: limit,
            clear_value: None,
            comparison: Comparison::Gt.word().to_owned(),
            duration_seconds: lasts_seconds,
            target: (metric == MetricType::Temperature).then(|| DRIVE.to_owned()),
            states: None,
            severity: severity.word().to_owned(),
            enabled: true,
        };
        // A loop is so many deaths of a container or more.
        let terms = if metric == MetricType::ContainerState {
            ThresholdTerms {
                comparison: Comparison::Gte.word().to_owned(),
                states: Some("restart_loop".to_owned()),
                ..terms
            }
        } else {
            terms
        };
        all.push(scene.state.store.create_threshold(scene.owner_id, terms, scene.visitor.clone()).await?);
    }
    Ok(all)
}

async fn tell(
    scene: &Scene<'_>,
    story: &Story,
    (server_id, machine): &Simulated,
    threshold: &Threshold,
) -> Result<(), StoreError> {
    let store = &scene.state.store;
    let alert = opened(scene, story, *server_id, machine, threshold);
    let (id, opened_at) = (alert.id, Timestamp::from(alert.triggered_at));
    let audience = AlertAudience { tags: machine.tags.clone(), viewers: Vec::new() };
    store.change_alerts(&[AlertChange::Opened { alert: Box::new(alert), audience }]).await?;
    if let Some((after, note)) = story.acknowledged {
        let at = opened_at.plus_millis((after * 3_600_000.0) as i64);
        let noted_at = at.plus_millis(41_000);
        let events = [("acknowledged", at, None), ("note", noted_at, Some(note))];
        let events = events.map(|(kind, at, detail)| timeline(&scene.colleague, id, kind, at, detail));
        store.add_alert_events(&events).await?;
    }
    if let Some(resolved) = story.resolved {
        let at = scene.course.at(resolved);
        store.change_alerts(&[AlertChange::Resolved { id, by: "recovery", sample_at: at, at }]).await?;
    }
    Ok(())
}

/// The alert as it stands before its recovery.
fn opened(scene: &Scene<'_>, story: &Story, server_id: Uuid, machine: &Machine, threshold: &Threshold) -> Alert {
    let at = scene.course.at(story.opened);
    let acknowledged_at = story.acknowledged.map(|(after, _)| at.plus_millis((after * 3_600_000.0) as i64));
    let status = if acknowledged_at.is_some() { Status::Acknowledged } else { Status::Active };
    let is_series = story.metric == MetricType::Series;
    let subject = AlertSubject {
        metric: story.metric,
        series: threshold.series.as_deref(),
        target: threshold.target.as_deref().or(story.worst),
        server: &machine.name,
    };
    let message = fired(
        &subject,
        &Measured {
            value: story.value,
            unit: is_series.then_some(Unit { name: "per_second", is_rate: false }),
            comparison: Comparison::Gt,
            limit: threshold.threshold_value,
            lasted_ms: i64::from(threshold.duration_seconds) * 1_000,
            processes: None,
            trouble: None,
            exit_code: None,
        },
    );
    Alert {
        id: id_at(at, machine.seed),
        owner_id: scene.owner_id,
        server_id,
        threshold_id: threshold.id,
        threshold_revision: threshold.revision,
        metric_type: threshold.metric_type.clone(),
        series: threshold.series.clone(),
        unit: is_series.then(|| "per_second".to_owned()),
        target: threshold.target.clone(),
        worst_target: story.worst.map(str::to_owned),
        threshold_value: threshold.threshold_value,
        clear_value: threshold.clear_value,
        comparison: threshold.comparison.clone(),
        duration_seconds: threshold.duration_seconds,
        severity: threshold.severity.clone(),
        status: status.word().to_owned(),
        value: story.value,
        peak_value: story.peak,
        message,
        is_silenced: false,
        sample_at: at.into(),
        notify_at: None,
        triggered_at: at.into(),
        acknowledged_at: acknowledged_at.map(Into::into),
        acknowledged_by: acknowledged_at.and(scene.colleague.user_id),
        resolved_at: None,
        resolved_by: None,
        rearmed_at: None,
    }
}

/// A line of a timeline. Ids rise in the order of the lines.
fn timeline(by: &Actor, alert_id: Uuid, kind: &str, at: Timestamp, detail: Option<&str>) -> AlertEvent {
    AlertEvent {
        id: Uuid::now_v7(),
        alert_id,
        at: at.into(),
        kind: kind.to_owned(),
        user_id: by.user_id,
        username: Some(by.username.to_string()),
        detail: detail.map(str::to_owned),
    }
}

async fn silences(scene: &Scene<'_>) -> Result<(), StoreError> {
    let of = |name: &str| scene.servers.iter().find(|(_, machine)| machine.name == name).map(|(id, _)| *id);
    let mut silences = Vec::new();
    if let Some(server_id) = of("db-primary") {
        let schedule = WeeklySchedule {
            weekdays: "1,2,3,4,5,6,7".to_owned(),
            start_minute: 180,
            duration_minutes: 30,
            time_zone: "UTC".to_owned(),
        };
        silences.push(SilenceTerms {
            reach: Reach { server_id: Some(server_id), tag: None },
            reason: "Nightly backup".to_owned(),
            starts_at: None,
            ends_at: None,
            schedule: Some(schedule),
        });
    }
    if let Some(server_id) = of("staging") {
        silences.push(SilenceTerms {
            reach: Reach { server_id: Some(server_id), tag: None },
            reason: "Load tests".to_owned(),
            starts_at: Some(scene.course.at(-5.0)),
            ends_at: Some(scene.course.at(43.0)),
            schedule: None,
        });
    }
    for terms in silences {
        scene.state.store.create_silence(scene.owner_id, terms, scene.colleague.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    #[test]
    fn every_story_has_a_server_and_a_rule() {
        let fleet = fleet(24);

        for story in stories() {
            let machine = fleet.iter().find(|machine| machine.name == story.server).unwrap();
            let is_its = |rule: &&Rule| rule.metric == story.metric && rule.tag == machine.role.word();
            let rule = RULES.iter().find(is_its).unwrap();
            assert!(story.value >= rule.limit && story.peak >= story.value, "{}", story.server);
        }
    }

    #[test]
    fn no_alert_ends_before_it_began() {
        for story in stories() {
            let acknowledged = story.acknowledged.map_or(story.opened, |(after, _)| story.opened + after);

            assert!(story.opened < 0.0 && acknowledged < 0.0, "{}", story.server);
            assert!(story.resolved.is_none_or(|resolved| acknowledged < resolved), "{}", story.server);
        }
    }
}
