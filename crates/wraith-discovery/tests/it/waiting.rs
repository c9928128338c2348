//! Who waits does nothing meanwhile.

use std::fs;
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wraith_discovery::Places;

use super::support::{alone, loopback, offered, server};

/// How long is waited; the end of it is one waking.
const WAITED: Duration = Duration::from_secs(5);
/// The end, and what else on this machine may send to the group or change an interface meanwhile.
const MOST_WAKINGS: u64 = 5;

/// How often this thread has gone to sleep, which is how often it has woken up.
fn wakings() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[tokio::test]
async fn a_code_that_waits_at_all_places_wakes_nobody_up() {
    let _alone = alone().await;
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    let places = Places { rendezvous: Some(server.to_string()), ..loopback() };
    let (tell, told) = oneshot::channel();
    // A thread that does nothing else.
    let waiter = thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sender = offered(&places, 1).await;
            assert_eq!(sender.places().len(), 2);
            // What beginning takes is not counted.
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
