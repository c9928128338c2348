//! Detects that the machine was suspended. Timers stand still meanwhile, so a pause of a minute
//! would end up to a minute after the machine has woken.
//!
//! A [`TimeLimit`] does not end because of a suspension: peers could not be reached during it.
//!
//! Linux cancels a wall-clock timer when the wall clock jumps (timerfd_create(2),
//! `TFD_TIMER_CANCEL_ON_SET`). After a suspension, it jumps. So nothing is polled.
//!
//! Invariant: only suspensions of 5 s or more are reported. A step of the wall clock also cancels the
//! timer, but then CLOCK_BOOTTIME minus CLOCK_MONOTONIC has not changed.

use std::time::Duration;

use tokio::select;
use tokio::time::{Instant, sleep, sleep_until};

/// Shorter suspensions are ignored: connections survive them.
const SHORTEST: Duration = Duration::from_secs(5);

/// A watch for suspensions of the machine. It reports none where the system does not support it.
#[derive(Debug)]
pub struct SuspensionWatch {
    events: Option<events::ClockJumps>,
    /// The latest report, or the start.
    reported: SuspensionMark,
}

impl Default for SuspensionWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl SuspensionWatch {
    /// Starts the watch. Must be called in a tokio runtime.
    pub fn new() -> Self {
        Self { events: events::ClockJumps::subscribe().ok(), reported: SuspensionMark::now() }
    }

    /// Waits until the machine has woken from a suspension of some seconds or more. Cancel-safe.
    pub async fn woken(&mut self) {
        loop {
            let Some(events) = &self.events else { return std::future::pending().await };
            if events.wait().await.is_err() {
                self.events = None;
                continue;
            }
            if self.reported.was_suspended() {
                self.reported = SuspensionMark::now();
                return;
            }
        }
    }
}

/// Sleeps for `time`, or until the machine has woken from a suspension. Cancel-safe. Must be called
/// in a tokio runtime.
pub async fn sleep_or_wake(time: Duration) {
    let mut watch = SuspensionWatch::new();
    select! {
        () = sleep(time) => {}
        () = watch.woken() => {}
    }
}

/// A moment, to ask later whether the machine was suspended since.
#[derive(Clone, Copy, Debug)]
pub struct SuspensionMark {
    /// Total time of suspension by then.
    suspended: Duration,
}

impl SuspensionMark {
    /// Marks this moment.
    pub fn now() -> Self {
        Self { suspended: events::suspended() }
    }

    /// Reports whether the machine was suspended for 5 s or more since, in total.
    pub fn was_suspended(&self) -> bool {
        events::suspended() >= self.suspended + SHORTEST
    }
}

/// Time that is left of a [`TimeLimit`] after a suspension, if the limit is longer.
const LEFT_AFTER_WAKING: Duration = Duration::from_secs(60);

/// A limit for a wait for other machines. After a suspension of this machine of 5 s or more, a
/// minute of it is left at least, or all of a shorter limit: no peer could answer meanwhile.
#[derive(Clone, Debug)]
pub struct TimeLimit {
    span: Duration,
    end: Instant,
    mark: SuspensionMark,
}

impl TimeLimit {
    /// Starts a limit of `span`.
    pub fn new(span: Duration) -> Self {
        Self { span, end: Instant::now() + span, mark: SuspensionMark::now() }
    }

    /// Waits until the limit is reached. Cancel-safe.
    pub async fn reached(&mut self) {
        sleep_until(self.end).await;
        while self.extend_after_suspension() {
            sleep_until(self.end).await;
        }
    }

    /// Returns the time left.
    pub fn left(&mut self) -> Duration {
        self.extend_after_suspension();
        self.end.saturating_duration_since(Instant::now())
    }

    /// Extends the limit if the machine was suspended since it began or was extended. Returns true
    /// if it was.
    fn extend_after_suspension(&mut self) -> bool {
        let was_suspended = self.mark.was_suspended();
        if was_suspended {
            self.mark = SuspensionMark::now();
            self.extend();
        }
        was_suspended
    }

    fn extend(&mut self) {
        self.end = self.end.max(Instant::now() + self.span.min(LEFT_AFTER_WAKING));
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod events {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};
    use rustix::io::Errno;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// Expiry of the timer: never.
    const NEVER_SECONDS: i64 = 1 << 40;

    /// Returns the total time for which the machine was suspended.
    pub fn suspended() -> Duration {
        // The C library's call: that of rustix reads the vDSO itself, which valgrind hides.
        let since = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        since(ClockId::CLOCK_BOOTTIME).saturating_sub(since(ClockId::CLOCK_MONOTONIC))
    }

    /// Jumps of the wall clock against the monotonic one.
    #[derive(Debug)]
    pub struct ClockJumps(AsyncFd<OwnedFd>);

    impl ClockJumps {
        pub fn subscribe() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
            arm(&timer)?;
            registered(timer).map(Self)
        }

        /// Waits for a jump.
        pub async fn wait(&self) -> io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                match rustix::io::read(self.0.get_ref(), &mut [0; 8]) {
                    Err(Errno::CANCELED) => {
                        ready.clear_ready();
                        return arm(self.0.get_ref());
                    }
                    Err(Errno::AGAIN) => ready.clear_ready(),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) => arm(self.0.get_ref())?,
                }
            }
        }
    }

    /// Registers the descriptor. The call is deprecated because it accepts types that may close
    /// their descriptor early; an [`OwnedFd`] keeps it open.
    #[allow(deprecated, reason = "sound for an OwnedFd, and the other call is unsafe")]
    fn registered(timer: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::new(timer)
    }

    fn arm(timer: &OwnedFd) -> io::Result<()> {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let it_value = Timespec { tv_sec: NEVER_SECONDS, tv_nsec: 0 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A jump between the last reading and this call cancels the call, too.
        while let Err(error) = timerfd_settime(timer, flags, &Itimerspec { it_interval, it_value })
        {
            if error != Errno::CANCELED {
                return Err(error.into());
            }
        }
        Ok(())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod events {
    use std::io;
    use std::time::Duration;

    pub fn suspended() -> Duration {
        Duration::ZERO
    }

    #[derive(Debug)]
    pub struct ClockJumps;

    impl ClockJumps {
        pub fn subscribe() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub async fn wait(&self) -> io::Result<()> {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_accepts_the_timer_and_a_machine_that_is_awake_reports_nothing() {
        let mut watch = SuspensionWatch::new();
        assert_eq!(watch.events.is_some(), cfg!(any(target_os = "linux", target_os = "android")));
        let is_woken = select! {
            () = watch.woken() => true,
            () = sleep(Duration::from_millis(20)) => false,
        };
        assert!(!is_woken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspension_leaves_a_minute_of_a_limit_or_all_of_a_shorter_one() {
        const HOUR: u64 = 60 * 60;
        for (span, left, extended) in
            [(12 * HOUR, 10, 60), (10, 1, 10), (12 * HOUR, 5 * HOUR, 5 * HOUR), (90, 0, 60)]
        {
            let [span, left, extended] = [span, left, extended].map(Duration::from_secs);
            let mut limit = TimeLimit::new(span);
            tokio::time::advance(span - left).await;
            assert_eq!(limit.left(), left);
            limit.extend();
            assert_eq!(limit.left(), extended);
            let start = Instant::now();
            limit.reached().await;
            assert_eq!(start.elapsed().as_secs(), extended.as_secs());
        }
    }
}
