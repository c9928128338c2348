//! Counters and gauges of a server, in the text format of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter or gauge.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Defines a struct of [`Counter`]s and its method `to_text`. Each name gets the prefix.
///
/// ```
/// wraith_relay::metrics! {
///     /// Metrics of a daemon.
///     pub struct Metrics, "daemon_";
///     requests counter "requests_total" "Requests received.",
/// }
/// let metrics = Metrics::default();
/// metrics.requests.add(1);
/// assert!(metrics.to_text().ends_with("\ndaemon_requests_total 1\n"));
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $metrics:ident, $prefix:literal;
        $($field:ident $kind:ident $name:literal $help:literal,)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        $visibility struct $metrics {
            $(#[doc = $help] pub $field: $crate::Counter,)*
        }

        impl $metrics {
            /// Formats the metrics in Prometheus' text format, version 0.0.4.
            $visibility fn to_text(&self) -> String {
                let mut text = String::new();
                $(
                    let (name, value) = (concat!($prefix, $name), self.$field.get());
                    let (help, kind) = ($help, stringify!($kind));
                    text.push_str(&format!(
                        "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
                    ));
                )*
                text
            }
        }
    };
}
