//! CPU time of the current thread as the measured time. It excludes the work of other processes,
//! which is most of the noise on a shared machine. Every row works in one thread and never waits,
//! so on an idle machine this equals wall-clock time.

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use rustix::time::{ClockId, clock_gettime};

pub(crate) struct ThreadTime;

fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it does not run backwards")
}

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        now()
    }

    fn end(&self, start: Duration) -> Duration {
        now() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
