//! Runs one contender in one cell, and returns the figures; or many such runs on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wraith_core::Time;

use crate::cell::{Cell, Condition};
use crate::contender::Contender;
use crate::host::Content;
use crate::model_cubic;
use crate::network::{FlowProgress, Network, receiver_address, sender_address};

/// Bytes of a flow that never runs out of data.
const ENDLESS_BYTES: u64 = 1 << 50;
/// Percentile of the queue delay that users experience.
const QUEUE_PERCENTILE: f64 = 95.0;

/// Figures of one contender in one cell.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Delivered application bytes as a share of the link's capacity; see [`crate::cell`]. For two
    /// flows, both.
    pub goodput: f64,
    /// Goodput in Mbit/s.
    pub mbit: f64,
    /// 95th percentile of the wait in the bottleneck's queue.
    pub queue_delay: Duration,
    /// Packets declared lost, as a share of those sent.
    pub retransmitted: f64,
    /// Packets declared lost that were not dropped, as a share of those sent.
    pub spurious: f64,
    /// For two flows, Jain's index and the share of the first flow.
    pub fairness: Option<(f64, f64)>,
    /// Simulated time.
    pub time: Duration,
    /// Packets the first flow sent.
    pub packets: u64,
    /// End of the run.
    pub end: RunEnd,
    /// Number of runs with different seeds, of which this is the one with the median goodput.
    pub runs: u32,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Everything arrived, or the time of the competition was over.
    Complete,
    /// It took too long; see [`crate::cell`].
    Cut,
    /// The transport gave up.
    Aborted(String),
}

/// Runs `contender` in `cell`. If it gives up, it runs again with smaller windows. Returns the run
/// that did not give up, or else the run with the highest goodput.
pub fn run(cell: &Cell, contender: Contender, seed: u64) -> Figures {
    let mut best: Option<Figures> = None;
    for &windows in contender.windows() {
        let flows = Flows { contender, windows, seed };
        let figures =
            if cell.has_two_flows() { compete(cell, flows) } else { transfer(cell, flows) };
        let gave_up = matches!(figures.end, RunEnd::Aborted(_));
        if best.as_ref().is_none_or(|best| !gave_up || figures.goodput > best.goodput) {
            best = Some(figures);
        }
        if !gave_up {
            break;
        }
    }
    best.expect("every contender has windows")
}

/// Parameters of the flows.
#[derive(Clone, Copy, Debug)]
struct Flows {
    contender: Contender,
    windows: u64,
    seed: u64,
}

impl Flows {
    fn add(self, network: &mut Network, flow: usize, starts: Time, bytes: u64) {
        let addresses = (sender_address(flow), receiver_address(flow));
        let flow = flow as u64;
        let content = Content::new(self.seed, flow, bytes);
        let (sender, receiver) =
            self.contender.pair(self.windows, self.seed, flow, addresses, content);
        network.add_flow(starts, sender, receiver);
    }
}

fn transfer(cell: &Cell, flows: Flows) -> Figures {
    let link = cell.link();
    let mut network = Network::new(flows.seed, link.up, link.down);
    flows.add(&mut network, 0, Time::ZERO, cell.transfer_bytes());
    let ended = network.run_until(Time::ZERO + cell.deadline());
    let time = network.now().since(Time::ZERO);
    let flow = network.progress().remove(0);
    let delivered = flow.receiver.delivered;
    Figures {
        goodput: delivered as f64 / cell.capacity_bytes(time),
        mbit: delivered as f64 * 8.0 / 1e6 / time.as_secs_f64(),
        fairness: None,
        queue_delay: link.queue.percentile(QUEUE_PERCENTILE),
        end: end_of(&flow, ended),
        ..losses(&flow.sender, network.dropped(), time)
    }
}

fn compete(cell: &Cell, flows: Flows) -> Figures {
    let link = cell.link();
    let mut network = Network::new(flows.seed, link.up, link.down);
    let (second, from) = cell.competition();
    flows.add(&mut network, 0, Time::ZERO, ENDLESS_BYTES);
    let second = Time::ZERO + second;
    if cell.condition == Condition::AgainstCubic {
        let (sender, receiver) = model_cubic::pair((sender_address(1), receiver_address(1)));
        network.add_flow(second, Box::new(sender), Box::new(receiver));
    } else {
        flows.add(&mut network, 1, second, ENDLESS_BYTES);
    }
    let mut ended = network.run_until(Time::ZERO + from);
    let before = network.progress();
    ended |= network.run_until(Time::ZERO + cell.deadline());
    let time = network.now().since(Time::ZERO);
    let after = network.progress();
    let delivered =
        |flow: usize| (after[flow].receiver.delivered - before[flow].receiver.delivered) as f64;
    let (first, other) = (delivered(0), delivered(1));
    let counted = time.saturating_sub(from).as_secs_f64();
    let capacity = cell.capacity_bytes(time) - cell.capacity_bytes(from);
    let sum = first + other;
    let jain = sum * sum / (2.0 * (first * first + other * other)).max(f64::MIN_POSITIVE);
    // The drops of both flows are counted together, so they are divided in proportion to the
    // declared losses.
    let declared: u64 = after.iter().map(|flow| flow.sender.packets_lost).sum();
    let dropped = network.dropped() as f64 * after[0].sender.packets_lost as f64;
    Figures {
        goodput: if capacity > 0.0 { sum / capacity } else { 0.0 },
        mbit: if counted > 0.0 { sum * 8.0 / 1e6 / counted } else { 0.0 },
        fairness: Some((jain, first / sum.max(1.0))),
        queue_delay: link.queue.percentile(QUEUE_PERCENTILE),
        end: if ended { end_of(&after[0], ended) } else { RunEnd::Complete },
        ..losses(&after[0].sender, (dropped / declared.max(1) as f64) as u64, time)
    }
}

fn losses(sender: &crate::host::Progress, dropped: u64, time: Duration) -> Figures {
    let part = |packets: u64| packets as f64 / sender.packets_sent.max(1) as f64;
    Figures {
        goodput: 0.0,
        mbit: 0.0,
        queue_delay: Duration::ZERO,
        retransmitted: part(sender.packets_lost),
        spurious: part(sender.packets_lost.saturating_sub(dropped)),
        fairness: None,
        time,
        packets: sender.packets_sent,
        end: RunEnd::Cut,
        runs: 1,
    }
}

fn end_of(flow: &FlowProgress, ended: bool) -> RunEnd {
    let aborted = flow.sender.aborted.clone().or_else(|| flow.receiver.aborted.clone());
    match (aborted, ended) {
        (Some(why), _) => RunEnd::Aborted(why),
        (None, true) => RunEnd::Complete,
        (None, false) => RunEnd::Cut,
    }
}

/// Runs all of `work` on `jobs` threads; the results are in the order of the work. `done` is called
/// after each run.
pub fn run_all(
    work: &[(Cell, Contender)],
    seed: u64,
    jobs: usize,
    done: impl Fn(usize) + Sync,
) -> Vec<Figures> {
    // The longest first, so that no thread is left alone with one at the end.
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(work[i].0.transfer_bytes()));
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Figures>>> = work.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (cell, contender) = &work[index];
                    let figures = run(cell, *contender, seed);
                    *results[index].lock().expect("no thread panics with it") = Some(figures);
                    done(finished.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let results = results.into_iter();
    results
        .map(|slot| slot.into_inner().ok().flatten().expect("every piece of work was done"))
        .collect()
}
