//! Two network namespaces with a link between them.
//!
//! Invariant: nothing remains afterwards, as with the [namespaces](super::namespace) themselves.
//! The link ends when its standard input is closed, and the devices end with it.

use std::io::{BufReader, Read};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::namespace::{Namespace, expect_ready, inside, run};

/// Address of the side that sends.
pub const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of the side that receives.
pub const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const A_DEVICE: &str = "wraith-lab-a";
const B_DEVICE: &str = "wraith-lab-b";
/// Length of the queue between the kernel and the link, in packets: 30 MB. Bursts of TCP and GSO
/// must not be lost before the link.
const DEVICE_QUEUE: u32 = 20_000;
/// Settings of both namespaces: no background traffic, no cached metrics of earlier runs, and
/// buffers for the largest product of rate and delay.
const SETTINGS: [(&str, &str); 4] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
    ("net/ipv4/tcp_wmem", "4096 131072 67108864"),
];

/// Both namespaces and the link between them, fresh for one run.
#[derive(Debug)]
pub struct Lab {
    pub a: Namespace,
    pub b: Namespace,
    relay: Child,
    out: BufReader<ChildStdout>,
}

/// Report of the link about a run.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// JSON as printed by `wraith-netlab`.
    pub json: Value,
    /// Packets lost because the link was not read fast enough, in both directions.
    pub missed: u64,
}

impl Lab {
    /// Sets up a link of these boxes in both directions; `program` is `wraith-netlab`.
    pub fn start(program: &Path, (up, down): (&str, &str), seed: u64) -> Result<Self> {
        let (a, b) = (Namespace::new(&SETTINGS)?, Namespace::new(&SETTINGS)?);
        // Real-time priority: a late link would delay every peer.
        let mut relay = inside(a.pid(), "chrt")
            .args(["--fifo", "1"])
            .arg(program)
            .args(["link", "--a", A_DEVICE, "--b", B_DEVICE, "--up", up, "--down", down])
            .args(["--seed", &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut out = BufReader::new(relay.stdout.take().context("it was piped")?);
        expect_ready(&mut out, "the link")?;
        let lab = Self { a, b, relay, out };
        let b_pid = lab.b.pid().to_string();
        run(inside(lab.a.pid(), "ip").args(["link", "set", B_DEVICE, "netns", &b_pid]))?;
        configure(&lab.a, A_DEVICE, A)?;
        configure(&lab.b, B_DEVICE, B)?;
        Ok(lab)
    }

    /// Runs `work`, and kills everything in the lab after `limit`. The second value states whether
    /// that happened.
    pub fn within<T>(&self, limit: Duration, work: impl FnOnce() -> T) -> (T, bool) {
        let (done, over) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let watchdog = scope.spawn(move || {
                let timed_out = over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                if timed_out {
                    // The link is in neither PID namespace, so it can still report.
                    self.a.end();
                    self.b.end();
                }
                timed_out
            });
            let result = work();
            drop(done);
            (result, watchdog.join().expect("the watchdog does not panic"))
        })
    }

    /// Stops the link and returns its report.
    pub fn finish(mut self) -> Result<LinkReport> {
        // After a timeout the second namespace is gone; the first lives as long as the link in it.
        let missed =
            dropped(self.relay.id(), A_DEVICE)? + dropped(self.b.pid(), B_DEVICE).unwrap_or(0);
        drop(self.relay.stdin.take());
        let mut text = String::new();
        self.out.read_to_string(&mut text)?;
        let json = serde_json::from_str(&text).context("the link printed no report")?;
        self.relay.wait()?;
        Ok(LinkReport { json, missed })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.relay.stdin.take());
        let _ = self.relay.wait();
    }
}

/// Gives the device in `namespace` an address and a queue length.
fn configure(namespace: &Namespace, device: &str, address: Ipv4Addr) -> Result<()> {
    run(namespace.command("ip").args(["addr", "add", &format!("{address}/30"), "dev", device]))?;
    let queue = DEVICE_QUEUE.to_string();
    let words = ["link", "set", device, "mtu", "1500", "txqueuelen", &queue, "up"];
    run(namespace.command("ip").args(words))
}

/// Packets dropped between the kernel and the link, as counted by the device in the namespace of
/// `pid`.
fn dropped(pid: u32, device: &str) -> Result<u64> {
    let out = inside(pid, "ip").args(["-j", "-s", "link", "show", "dev", device]).output()?;
    let json: Value = serde_json::from_slice(&out.stdout).context("ip -j printed no JSON")?;
    json[0]["stats64"]["tx"]["dropped"].as_u64().context("ip -j printed no statistics")
}
