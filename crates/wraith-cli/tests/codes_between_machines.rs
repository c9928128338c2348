//! Meeting by multicast between two network namespaces joined by a cable (veth), with nothing else: no server, no route.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{Process, World, tree};

/// Two namespaces and the cable; removed when dropped.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// None without root or `ip`.
    fn new(addresses: Option<[&str; 2]>) -> Option<Self> {
        let id = std::process::id();
        let kind = if addresses.is_some() { "v4" } else { "v6" };
        let cable = Self { names: ["a", "b"].map(|end| format!("wraith-{kind}-{end}-{id}")) };
        let [a, b] = &cable.names;
        let made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&[
                "-n", a, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
                b,
            ]);
        if !made {
            return None;
        }
        for (at, name) in cable.names.iter().enumerate() {
            assert!(ip(&["-n", name, "link", "set", "lo", "up"]));
            if let Some(addresses) = addresses {
                assert!(ip(&["-n", name, "addr", "add", addresses[at], "dev", "cable"]));
            } else {
                // Its link-local address is good at once: nobody else is on the cable.
                Command::new("ip")
                    .args([
                        "netns",
                        "exec",
                        name,
                        "sysctl",
                        "-qw",
                        "net.ipv6.conf.cable.accept_dad=0",
                    ])
                    .status()
                    .ok()?;
            }
            assert!(ip(&["-n", name, "link", "set", "cable", "up"]));
        }
        Some(cable)
    }

    /// The command, run at one end.
    fn at(&self, end: usize, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.names[end]]).arg(command.get_program());
        inside.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}

/// A link-local address stands only a moment after the cable is up.
fn wait_for_ipv6(cable: &Cable) {
    let deadline = Instant::now() + Duration::from_secs(20);
    for name in &cable.names {
        loop {
            let output = Command::new("ip")
                .args(["-n", name, "-6", "addr", "show", "dev", "cable", "-tentative"])
                .output()
                .unwrap();
            if String::from_utf8_lossy(&output.stdout).contains("fe80") {
                break;
            }
            assert!(Instant::now() < deadline, "the cable has no address");
            std::thread::yield_now();
        }
    }
}

fn transfer_over(cable: &Cable) {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--lan", "all"]).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let code = sender.code();
    let mut receive = world.wraith("receiver");
    receive
        .args(["receive", "--json", "--yes", "--lan", "all", "-o"])
        .arg(world.target())
        .arg(code);
    let received = Process::start("receive", &mut cable.at(1, &receive)).finish();
    received.expect_exit(0);
    assert_eq!(received.last("met")["place"], "lan");
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn two_machines_on_one_cable_meet_over_ipv4() {
    match Cable::new(Some(["10.73.0.1/24", "10.73.0.2/24"])) {
        Some(cable) => transfer_over(&cable),
        None => support::skipped("network namespaces need root and ip"),
    }
}

#[test]
fn two_machines_without_any_configured_address_meet_over_ipv6() {
    match Cable::new(None) {
        Some(cable) => {
            wait_for_ipv6(&cable);
            transfer_over(&cable);
        }
        None => support::skipped("network namespaces need root and ip"),
    }
}
