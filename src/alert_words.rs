//! The words of thresholds and alerts.

/// Implements a closed set of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $variant),+
        }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// As it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// None for another word.
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
    /// What a threshold watches.
    MetricType {
        /// Percent of all cores.
        Cpu = "cpu",
        /// Percent.
        Memory = "memory",
        /// Percent.
        Swap = "swap",
        /// Percent of a file system.
        Disk = "disk",
        /// Over one minute.
        Load = "load",
        /// Bytes a second.
        NetworkIn = "network_in",
        /// Bytes a second.
        NetworkOut = "network_out",
        /// Degrees Celsius.
        Temperature = "temperature",
        /// Seconds without the agent.
        Offline = "offline",
        /// Containers that are in trouble.
        ContainerState = "container_state",
        /// Starts of the machine.
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
    /// How bad it is, from the least.
    Severity {
        Info = "info",
        Warning = "warning",
        Critical = "critical",
    }
);

words!(
    /// Where an alert stands.
    Status {
        Active = "active",
        /// Somebody looks after it.
        Acknowledged = "acknowledged",
        Resolved = "resolved",
    }
);

words!(
    /// What can be wrong with a container.
    Trouble {
        /// It has exited or is dead.
        Stopped = "stopped",
        /// Its own health check says so.
        Unhealthy = "unhealthy",
        /// It dies again and again within minutes.
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

    /// Whether larger values are the worse ones.
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
