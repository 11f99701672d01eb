//! tmp
use super::kind::{Comparison, MetricType};
use signalbox_protocol::Sample;
pub struct Reading<'a> {
    pub value: f64,
    pub worst: Option<&'a str>,
}
pub fn read<'a>(
    metric: MetricType,
    _target: Option<&str>,
    _c: Comparison,
    now: &'a Sample,
    _before: Option<&Sample>,
) -> Option<Reading<'a>> {
    let value = match metric {
        MetricType::Cpu => now.cpu_percent,
        MetricType::Memory => now.memory_percent,
        _ => return None,
    };
    Some(Reading { value, worst: None })
}
