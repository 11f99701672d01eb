//! The words of thresholds and alerts.

/// Implements an enum for a closed set of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $variant),+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The words of all variants, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word on the wire and in the database.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The variant of a word, or `None` for any other word.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words!(
    /// The value that a threshold watches.
    MetricType {
        /// In percent of all cores.
        Cpu = "cpu",
        /// In percent.
        Memory = "memory",
        /// In percent.
        Swap = "swap",
        /// In percent of a file system.
        Disk = "disk",
        /// The load average of one minute.
        Load = "load",
        /// In bytes per second.
        NetworkIn = "network_in",
        /// In bytes per second.
        NetworkOut = "network_out",
        /// In degrees Celsius.
        Temperature = "temperature",
        /// Seconds since the agent was last seen.
        Offline = "offline",
        /// The number of containers in trouble.
        ContainerState = "container_state",
        /// The number of reboots.
        Reboot = "reboot",
        /// An open series, in its unit.
        Series = "series",
    }
);

words!(
    /// How a value is compared with the threshold.
    Comparison {
        Gt = "gt",
        Gte = "gte",
        Lt = "lt",
        Lte = "lte",
    }
);

words!(
    /// The severity, in ascending order.
    Severity {
        Info = "info",
        Warning = "warning",
        Critical = "critical",
    }
);

words!(
    /// The state of an alert.
    Status {
        Active = "active",
        /// A person is working on it.
        Acknowledged = "acknowledged",
        Resolved = "resolved",
    }
);

words!(
    /// What can be wrong with a container.
    Trouble {
        /// It has exited or is dead.
        Stopped = "stopped",
        /// Its own health check reports it as unhealthy.
        Unhealthy = "unhealthy",
        /// It dies repeatedly within minutes.
        RestartLoop = "restart_loop",
    }
);

impl Comparison {
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Gt => value > limit,
            Self::Gte => value >= limit,
            Self::Lt => value < limit,
            Self::Lte => value <= limit,
        }
    }

    /// Whether larger values are worse.
    pub fn is_upper(self) -> bool {
        matches!(self, Self::Gt | Self::Gte)
    }

    /// Whether `value` is worse than `other`.
    pub fn is_worse(self, value: f64, other: f64) -> bool {
        if self.is_upper() { value > other } else { value < other }
    }
}

impl MetricType {
    /// Whether a threshold on it may name a disk, an interface, a sensor, containers or the target of an open series.
    pub fn has_targets(self) -> bool {
        matches!(
            self,
            Self::Disk | Self::NetworkIn | Self::NetworkOut | Self::Temperature | Self::ContainerState | Self::Series
        )
    }
}
