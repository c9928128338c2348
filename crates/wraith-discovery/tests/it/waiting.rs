//! A side that waits at a place does not wake up while nothing arrives.

use std::fs;
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wraith_discovery::Places;

use super::support::{loopback, offered, own_network, server};

/// Duration of the measurement; its end is one wake-up.
const WAITED: Duration = Duration::from_secs(5);
/// The end, and traffic of other processes to the group or interface changes meanwhile.
const MOST_WAKINGS: u64 = 5;

/// Returns the number of voluntary context switches of this thread, which equals its wake-ups.
fn wakings() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[tokio::test]
async fn a_code_that_waits_at_all_places_causes_no_wake_ups() {
    let _network = own_network();
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    let places = Places { rendezvous: Some(server.to_string()), ..loopback() };
    let (tell, told) = oneshot::channel();
    // A separate thread, so that no other work is counted.
    let waiter = thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sender = offered(&places, 1).await;
            assert_eq!(sender.places().len(), 2);
            // Excludes the cost of the start.
            sleep(Duration::from_millis(500)).await;
            let before = wakings();
            sleep(WAITED).await;
            let _ = tell.send(before.zip(wakings()).map(|(before, after)| after - before));
        });
    });
    let wakings = told.await.unwrap();
    waiter.join().unwrap();
    let Some(wakings) = wakings else { return eprintln!("skipped: /proc does not tell here") };
    assert!(wakings <= MOST_WAKINGS, "{wakings} in {WAITED:?}");
}
