//! tmp
use super::kind::{Comparison, MetricType, Trouble};
use signalbox_protocol::sample::ProcessUsage;
pub struct Occasion<'a> {
    pub metric: MetricType,
    pub comparison: Comparison,
    pub server: &'a str,
    pub target: Option<&'a str>,
    pub value: f64,
    pub limit: f64,
    pub lasted_ms: i64,
    pub top: &'a [ProcessUsage],
    pub container: Option<(&'a str, Trouble, &'a str)>,
}
pub fn triggered(o: &Occasion<'_>) -> String {
    format!("{} is {} on {}", o.metric.word(), o.value, o.server)
}
