//! Decides whether an authentic H1 is new or a replay of an earlier process (SPEC §3.4), and
//! reports clocks that differ.

use std::collections::VecDeque;

use wraith_noise::{AccessKey, InitiatorHello};

use super::Endpoint;
use crate::Time;
use crate::door::{ClockDifference, DoorId};
use crate::handshake_log::LogResult;

/// Maximum difference between the clocks of both sides, in seconds, where neither the replay memory
/// nor the handshake log is complete (SPEC §3.4).
const CLOCK_SKEW_MAX_S: u64 = 90;
/// Maximum number of unread reports. Later ones are dropped.
const REPORTS_MAX: usize = 16;

/// Reports of clocks that differ, oldest first.
pub(super) type ClockReports = VecDeque<ClockDifference>;

impl Endpoint {
    /// Returns the next report of a handshake that was refused because the clocks of both sides
    /// differ.
    pub fn poll_clock_difference(&mut self) -> Option<ClockDifference> {
        self.clock_reports.pop_front()
    }

    /// Returns true if an authentic H1 that is not in the replay memory can be no replay. Call this
    /// once for each H1, because it enters the H1 into the log.
    pub(super) fn is_fresh(
        &mut self,
        now: Time,
        hello: &InitiatorHello,
        door: DoorId,
        access_key: &AccessKey,
        ephemeral: &[u8; 16],
    ) -> bool {
        let Some(rules) = self.doors.get(door) else { return false };
        // Strangers have the public access key, and could fill the log.
        let logged = match access_key.is_public() {
            true => LogResult::Unknown,
            false => rules.handshake_log.record(access_key, ephemeral),
        };
        let is_proven = match logged {
            LogResult::New => true,
            LogResult::Known => return false,
            LogResult::Unknown => rules.access_keys_are_new && self.half_opens.remembers_every_h1(),
        };
        let seconds = i128::from(hello.unix_seconds) - i128::from(self.unix_seconds(now));
        if is_proven || seconds.unsigned_abs() <= u128::from(CLOCK_SKEW_MAX_S) {
            return true;
        }
        let seconds =
            i64::try_from(seconds).unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX });
        if self.clock_reports.len() < REPORTS_MAX {
            let access_key = access_key.clone();
            self.clock_reports.push_back(ClockDifference { door, access_key, seconds });
        }
        false
    }
}
