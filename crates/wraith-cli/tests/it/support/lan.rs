//! A local network for one test. Other senders, such as those of another test run, may have the same
//! three-digit nameplate, and a flood reaches every process.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sched::{CloneFlags, unshare};

/// Ports that the kernel gives to no socket by itself, in the namespace of the calling thread.
const RESERVED_PORTS: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// The network of a test, until dropped.
#[must_use]
#[derive(Debug)]
pub struct OwnNetwork {
    /// Held if the test shares the machine's network.
    _turn: Option<MutexGuard<'static, ()>>,
}

/// Moves the calling thread into a network namespace of its own, with a loopback interface. Threads
/// and processes that it starts from then on are there too.
///
/// Without root there is no such namespace. Then the tests of this process take turns, and other
/// processes may disturb them.
pub fn own_network() -> OwnNetwork {
    let has_ip = || Command::new("ip").arg("-V").output().is_ok_and(|ip| ip.status.success());
    if cfg!(target_os = "linux") && has_ip() && unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|up| up.success()), "the loopback interface of a new namespace");
        // No other socket gets the group's port by chance.
        let _ = std::fs::write(RESERVED_PORTS, "49737");
        return OwnNetwork { _turn: None };
    }
    eprintln!("no root: this test shares the machine's local network");
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test leaves nothing that could disturb the next one.
    OwnNetwork { _turn: Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)) }
}
