//! Many senders at once: no two codes have the same number.
//!
//! `WRAITH_TEST_SENDERS` sets their number: some in every run, 1,000 for a measurement.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::cable::copy_environment;
use crate::support::cable::{inside, ip};
use crate::support::{self, Process, World, lan, tree};

/// Number of codes that a run with few senders uses. A run with many uses all.
const TRANSFERS: usize = 5;
/// Machines on one local network.
const MACHINES: usize = 6;

/// Returns the number of senders, and of transfers.
fn counts() -> (usize, usize) {
    match std::env::var("WRAITH_TEST_SENDERS") {
        Ok(named) => (named.parse().unwrap(), named.parse().unwrap()),
        Err(_) => (30, TRANSFERS),
    }
}

/// Starts senders, checks their numbers, and uses their codes. `place` moves the command of a sender
/// or receiver to its machine.
fn all_have_different_numbers(lan: &str, place: impl Fn(usize, &Command) -> Command) {
    let (count, transfers) = counts();
    allow_open_files(4 * count as u64);
    let (world, film) = World::with_file("film.mov", 1, 100_000);
    let start = |n: usize| {
        let mut command = world.wraith(&format!("sender-{n}"));
        command.args(["send", "--json", "--lan", lan]).arg(&film);
        Process::start("send", &mut place(n, &command))
    };
    let mut senders: Vec<_> = (0..count).map(start).collect();
    let codes: Vec<_> = senders.iter_mut().map(Process::code).collect();
    let numbers: HashSet<_> = codes.iter().map(|code| code.split('-').next().unwrap()).collect();
    assert_eq!(numbers.len(), senders.len(), "{codes:?}");
    for (n, (code, sender)) in codes.iter().zip(senders).take(transfers).enumerate() {
        let target = world.path(&format!("target-{n}"));
        receive(&world, n, code, lan, &target, &place);
        sender.succeed();
        tree::assert_same(&film, &target.join("film.mov"));
    }
}

/// Raises the limit of open files of this process, if more senders need that.
fn allow_open_files(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).unwrap();
    }
}

/// Receives at the machine after the sender's.
fn receive(
    world: &World,
    n: usize,
    code: &str,
    lan: &str,
    target: &Path,
    place: &impl Fn(usize, &Command) -> Command,
) {
    let mut command = world.wraith(&format!("receiver-{n}"));
    command.args(["receive", "--json", "--yes", "--lan", lan, "-o"]).arg(target).arg(code);
    Process::start("receive", &mut place(n + 1, &command)).succeed();
}

#[test]
fn senders_on_one_machine_have_different_numbers() {
    let _network = lan::own_network();
    all_have_different_numbers("lo", |_, command| copy(command));
}

#[test]
fn senders_on_the_machines_of_one_network_have_different_numbers() {
    let Some(switch) = Switch::new() else {
        return support::skipped("network namespaces need root and ip");
    };
    all_have_different_numbers("all", |n, command| inside(&switch.machines[n % MACHINES], command));
}

/// Returns the same command.
fn copy(command: &Command) -> Command {
    let mut copy = Command::new(PathBuf::from(command.get_program()));
    copy.args(command.get_args());
    copy_environment(command, &mut copy);
    copy
}

/// Machines on one local network: namespaces at a bridge. Drop removes them.
struct Switch {
    name: String,
    machines: Vec<String>,
}

impl Switch {
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let machines = (0..MACHINES).map(|n| format!("wraith-m{n}-{id}")).collect();
        let switch = Self { name: format!("wraith-switch-{id}"), machines };
        let name = &switch.name;
        let is_made = ip(&["netns", "add", name])
            && ip(&["-n", name, "link", "add", "bridge", "type", "bridge"]);
        if !is_made {
            return None;
        }
        assert!(ip(&["-n", name, "link", "set", "bridge", "up"]));
        for (n, machine) in switch.machines.iter().enumerate() {
            let port = format!("port{n}");
            let link = ["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns"];
            assert!(ip(&["netns", "add", machine]));
            assert!(ip(&[&["-n", name][..], &link, &[machine]].concat()));
            assert!(ip(&["-n", name, "link", "set", &port, "master", "bridge", "up"]));
            let address = format!("10.76.0.{}/24", n + 1);
            assert!(ip(&["-n", machine, "addr", "add", &address, "dev", "eth0"]));
            assert!(ip(&["-n", machine, "link", "set", "lo", "up"]));
            assert!(ip(&["-n", machine, "link", "set", "eth0", "up"]));
        }
        Some(switch)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for name in self.machines.iter().chain([&self.name]) {
            ip(&["netns", "del", name]);
        }
    }
}
