//! The metrics of disks, devices, interfaces, sensors and containers.

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::series::Unit;

use super::row::{at, counter, fact, row, series, told, watching};
use super::{ExpositionValue, Field, HUNDREDTHS, Kind, MetricOf, Scale, Threshold};

/// The numbers are stored, so a number never changes its meaning. A new metric takes the lowest that no file here uses.
impl Field {
    /// The size of a file system.
    pub const DISK_TOTAL: Self = Self::new(12, Kind::Last, Scale::Whole);
    /// Bytes of a file system that are used.
    pub const DISK_USED: Self = Self::new(13, Kind::Gauge, Scale::Whole);
    /// Bytes of a file system that unprivileged users can still write.
    pub const DISK_FREE: Self = Self::new(14, Kind::Gauge, Scale::Whole);
    /// The used share of a file system.
    pub const DISK_PERCENT: Self = Self::new(15, Kind::Gauge, HUNDREDTHS);
    /// Bytes read from a device.
    pub const DISK_READ: Self = Self::new(16, Kind::Counter, Scale::Whole);
    /// Bytes written to a device.
    pub const DISK_WRITTEN: Self = Self::new(17, Kind::Counter, Scale::Whole);
    /// Bytes sent by an interface.
    pub const NETWORK_SENT: Self = Self::new(18, Kind::Counter, Scale::Whole);
    /// Bytes received by an interface.
    pub const NETWORK_RECEIVED: Self = Self::new(19, Kind::Counter, Scale::Whole);
    /// The temperature of a sensor.
    pub const CELSIUS: Self = Self::new(20, Kind::Gauge, Scale::Parts(10));
    /// Processor time of a container, as a share of one core.
    pub const CONTAINER_CPU: Self = Self::new(21, Kind::Gauge, HUNDREDTHS);
    /// Memory of a container.
    pub const CONTAINER_MEMORY: Self = Self::new(22, Kind::Gauge, Scale::Whole);
    /// Bytes received by a container.
    pub const CONTAINER_RECEIVED: Self = Self::new(23, Kind::Counter, Scale::Whole);
    /// Bytes sent by a container.
    pub const CONTAINER_SENT: Self = Self::new(24, Kind::Counter, Scale::Whole);
}

/// The metrics of each mounted file system.
pub static DISKS: [MetricOf<DiskUsage>; 4] = [
    row(
        fact(Field::DISK_TOTAL, "disk_total", Unit::Bytes)
            .exposed("node_filesystem_size_bytes", "Filesystem size in bytes."),
        at!(Whole total),
    ),
    told(
        |it| Some(ExpositionValue::Whole(it.total.saturating_sub(it.used))),
        row(
            series(Field::DISK_USED, "disk_used", Unit::Bytes, "used", "Bytes that a file system has in use.")
                .exposed("node_filesystem_free_bytes", "Filesystem free space in bytes, with what is kept for root."),
            at!(Whole used),
        ),
    ),
    row(
        fact(Field::DISK_FREE, "disk_free", Unit::Bytes)
            .exposed("node_filesystem_avail_bytes", "Filesystem space available to non-root users in bytes."),
        at!(Whole free),
    ),
    watching(
        |it| (it.total > 0).then_some(it.percent),
        row(
            series(
                Field::DISK_PERCENT,
                "disk_percent",
                Unit::Percent,
                "full",
                "Share of a file system that is in use, as df counts it.",
            )
            .watched(Threshold {
                word: "disk",
                label: "Disk",
                unit: Unit::Percent,
                counts: "percent full",
                usual: 90.0,
            }),
            at!(Number percent),
        ),
    ),
];

/// The metrics of each block device.
pub static DISK_IO: [MetricOf<DiskIo>; 2] = [
    row(
        counter(
            Field::DISK_READ,
            "disk_read",
            "disk_read_bytes",
            Unit::BytesPerSecond,
            "read",
            "Bytes a second that a device reads.",
        )
        .exposed("node_disk_read_bytes_total", "The total number of bytes read successfully."),
        at!(Whole read_bytes),
    ),
    row(
        counter(
            Field::DISK_WRITTEN,
            "disk_write",
            "disk_write_bytes",
            Unit::BytesPerSecond,
            "written",
            "Bytes a second that a device writes.",
        )
        .exposed("node_disk_written_bytes_total", "The total number of bytes written successfully."),
        at!(Whole write_bytes),
    ),
];

/// The first threshold for a network's rates: 100 MiB per second.
const FAST: f64 = 100.0 * 1024.0 * 1024.0;

/// The metrics of each network interface.
pub static NETWORK: [MetricOf<NetworkUsage>; 2] = [
    row(
        counter(
            Field::NETWORK_SENT,
            "network_out",
            "bytes_sent",
            Unit::BytesPerSecond,
            "out",
            "Bytes a second that an interface sends.",
        )
        .exposed("node_network_transmit_bytes_total", "Network device statistic transmit_bytes.")
        .watched(Threshold {
            word: "network_out",
            label: "Network out",
            unit: Unit::BytesPerSecond,
            counts: "MiB a second",
            usual: FAST,
        }),
        at!(Whole bytes_sent),
    ),
    row(
        counter(
            Field::NETWORK_RECEIVED,
            "network_in",
            "bytes_recv",
            Unit::BytesPerSecond,
            "in",
            "Bytes a second that an interface receives.",
        )
        .exposed("node_network_receive_bytes_total", "Network device statistic receive_bytes.")
        .watched(Threshold {
            word: "network_in",
            label: "Network in",
            unit: Unit::BytesPerSecond,
            counts: "MiB a second",
            usual: FAST,
        }),
        at!(Whole bytes_recv),
    ),
];

/// The metrics of each sensor.
pub static TEMPERATURES: [MetricOf<Temperature>; 1] = [row(
    series(Field::CELSIUS, "temperature", Unit::Celsius, "temperature", "What a sensor measures.")
        .exposed("node_hwmon_temp_celsius", "Hardware monitor for temperature.")
        .watched(Threshold {
            word: "temperature",
            label: "Temperature",
            unit: Unit::Celsius,
            counts: "degrees Celsius",
            usual: 85.0,
        }),
    at!(Number celsius),
)];

/// The metrics of each container.
pub static CONTAINERS: [MetricOf<ContainerUsage>; 4] = [
    row(
        series(Field::CONTAINER_CPU, "container_cpu", Unit::Percent, "CPU", "Share of one core that a container uses.")
            .exposed(
                "signalbox_container_cpu_usage_cores",
                "Cores that the container kept busy between the latest two samples. A gauge: there are no \
                 container_cpu_usage_seconds_total counters here.",
            ),
        at!(Number cpu_percent),
    ),
    row(
        series(Field::CONTAINER_MEMORY, "container_memory", Unit::Bytes, "memory", "Memory that a container uses.")
            .exposed("container_memory_usage_bytes", "Memory that the container uses, in bytes."),
        at!(Whole memory_bytes),
    ),
    row(
        counter(
            Field::CONTAINER_RECEIVED,
            "container_network_in",
            "container_network_rx_bytes",
            Unit::BytesPerSecond,
            "in",
            "Bytes a second that a container receives.",
        )
        .exposed(
            "container_network_receive_bytes_total",
            "Cumulative count of bytes received, over all of the container's interfaces.",
        ),
        at!(Whole network_rx_bytes),
    ),
    row(
        counter(
            Field::CONTAINER_SENT,
            "container_network_out",
            "container_network_tx_bytes",
            Unit::BytesPerSecond,
            "out",
            "Bytes a second that a container sends.",
        )
        .exposed(
            "container_network_transmit_bytes_total",
            "Cumulative count of bytes transmitted, over all of the container's interfaces.",
        ),
        at!(Whole network_tx_bytes),
    ),
];
