//! Two machines joined by a cable: network namespaces with a veth pair. Needs root and `ip`.

use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

/// Two namespaces and the cable. Drop removes them.
#[derive(Debug)]
pub struct Cable {
    names: [String; 2],
}

impl Cable {
    /// Makes the cable. Returns None without root or `ip`.
    pub fn new(addresses: Option<[&str; 2]>) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
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
            // Skips duplicate address detection, because the cable has no other host.
            Command::new("ip")
                .args(["netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.cable.accept_dad=0"])
                .status()
                .ok()?;
            if let Some(addresses) = addresses {
                assert!(ip(&["-n", name, "addr", "add", addresses[at], "dev", "cable"]));
            }
            assert!(ip(&["-n", name, "link", "set", "cable", "up"]));
        }
        Some(cable)
    }

    /// Waits for the link-local addresses, which appear a moment after the cable is up.
    pub fn wait_for_ipv6(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        for name in &self.names {
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

    /// Replaces the address of this end.
    pub fn readdress(&self, end: usize, before: &str, after: &str) {
        let name = &self.names[end];
        assert!(ip(&["-n", name, "addr", "del", before, "dev", "cable"]));
        assert!(ip(&["-n", name, "addr", "add", after, "dev", "cable"]));
    }

    /// Returns the name of the namespace at one end.
    pub fn name(&self, end: usize) -> &str {
        &self.names[end]
    }

    /// Sets the MTU of both ends, in bytes of IP.
    pub fn set_mtu(&self, bytes: u32) {
        for name in &self.names {
            assert!(ip(&["-n", name, "link", "set", "cable", "mtu", &bytes.to_string()]));
        }
    }

    /// Drops IP packets above `bytes` at both ends, without a message. Returns false without `nft`.
    pub fn drop_above(&self, bytes: u32) -> bool {
        if Command::new("nft").arg("--version").output().is_err() {
            return false;
        }
        let chain = format!(
            "type filter hook input priority 0; iifname \"cable\" meta length > {bytes} drop;"
        );
        let rules = format!("table inet narrow {{ chain input {{ {chain} }}; }}");
        for name in &self.names {
            // Otherwise the kernel hands over several packets as one large one.
            assert!(ip(&["-n", name, "link", "set", "cable", "gso_max_segs", "1"]));
            assert!(ip(&["netns", "exec", name, "nft", &rules]));
        }
        true
    }

    /// Returns the command, to run at one end.
    pub fn at(&self, end: usize, command: &Command) -> Command {
        inside(&self.names[end], command)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

/// Moves the calling thread into a namespace.
pub fn enter(namespace: &str) {
    let namespace = File::open(format!("/run/netns/{namespace}")).unwrap();
    setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
}

/// Returns the command, to run in a namespace.
pub fn inside(namespace: &str, command: &Command) -> Command {
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", namespace]).arg(command.get_program());
    inside.args(command.get_args());
    copy_environment(command, &mut inside);
    inside
}

/// Gives `to` the changes of the environment that `from` has.
pub fn copy_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

/// Runs `ip` with these words. Returns whether it succeeded.
pub fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}
