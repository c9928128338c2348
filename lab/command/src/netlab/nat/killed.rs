//! The relay dies in the middle of a transfer between two hosts without another path, and comes
//! back. The transfer continues by itself, and no verified byte is sent again.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::Lab;
use super::profile::Profile;
use super::side::{RunContext, TimedEvent, relay_address};
use super::transfer::{Job, ProgramArgs, has_moved};
use crate::race::data::DataSet;

/// File of the story: small and slow, so that its progress is visible.
pub const SMALL: File = File { bytes: 24_000_000, rate: "3M" };
/// A file that takes a while at full speed. The rate limit is beyond the capacity of this path.
pub const LARGE: File = File { bytes: 1_000_000_000, rate: "4G" };
/// Time without a relay.
const DEAD_FOR: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(180);

/// The sent file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    bytes: u64,
    /// `--rate` of both sides.
    rate: &'static str,
}

/// Result of the resumed transfer.
#[derive(Debug)]
pub struct Resumed {
    /// Time from the start of the new relay to the next byte.
    pub after: Duration,
    /// Verified bytes that were sent a second time.
    pub again: u64,
    /// The receiver's `done` event.
    pub done: Value,
}

/// Kills the relay once and returns the result. Fails if the transfer did not continue by itself,
/// or started again from the beginning.
pub fn run(stage: &RunContext, name: &str, profile: &Profile, file: File) -> Result<Resumed> {
    let set = DataSet::one_file(&stage.folder(&format!("{name}/data"))?, file.bytes)?;
    let mut lab = Lab::new()?;
    let home = format!("{name}/relay");
    let relay = stage.relay(&lab, &home)?;
    let (from, to) = (lab.host_behind(profile)?, lab.host_behind(profile)?);
    let address = relay_address();
    let words = ProgramArgs { both: &["--relay", &address], rate: file.rate };
    let job = Job { set: &set, name: name.to_owned(), words, limit: LIMIT };
    let offered = job.offer(stage, &from)?;
    let mut receiver = job.receive(stage, &to, &offered.code)?;
    receiver.expect("a third of it", LIMIT, |seen| has_moved(seen, file.bytes / 3))?;
    stage.log("the relay is killed");
    relay.kill(lab.command("kill"))?;
    thread::sleep(DEAD_FOR);
    stage.log("the relay is started again");
    let back = Instant::now();
    let _relay = stage.relay(&lab, &home)?;
    let held = held(&receiver.seen);
    let next = receiver
        .expect("another byte", LIMIT, |seen| seen.at > back && has_moved(seen, held + 1))?;
    let held = self::held(&receiver.seen[..receiver.seen.len() - 1]);
    let outcome = job.complete(stage, offered, receiver)?;
    let moved = outcome.done["bytes_moved"].as_u64().context("done has no bytes_moved")?;
    ensure!(outcome.path == "relay", "it found another path: {}", outcome.path);
    let again = (held + moved).saturating_sub(file.bytes);
    Ok(Resumed { after: next.at.duration_since(back), again, done: outcome.done })
}

/// Bytes that the receiver has reported so far.
fn held(events: &[TimedEvent]) -> u64 {
    let progress = events.iter().rev().find(|seen| seen.is("progress"));
    progress.and_then(|seen| seen.event["bytes"].as_u64()).unwrap_or_default()
}

impl Resumed {
    /// Describes the result in a sentence.
    pub fn describe(&self) -> String {
        let figure = |name: &str| self.done[name].as_u64().unwrap_or_default();
        format!(
            "{} bytes arrived over {} connections; the next byte {:.2?} after the relay was back; {} verified bytes sent again",
            figure("bytes"),
            figure("connections"),
            self.after,
            self.again,
        )
    }
}
