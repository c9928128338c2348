//! An internet of network namespaces: one namespace that routes and runs public servers, and sites
//! behind it.
//!
//! ```text
//!  host ──lan── router ──wan── … ──wan── internet (PUBLIC, both families)
//!  192.168.7.2  192.168.7.1   11.1.N.2   11.1.N.1
//! ```
//!
//! All homes have the same private addresses, as in reality. Programs take the simulated public
//! addresses for global ones; no namespace has a route out of this machine.

use std::io::{BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::profile::{Profile, rules};
use crate::netlab::namespace::{Namespace, expect_ready, inside, run};

/// IPv4 addresses of public servers: two, so that one can answer for the other.
pub const PUBLIC: [Ipv4Addr; 2] = [Ipv4Addr::new(11, 0, 0, 1), Ipv4Addr::new(11, 0, 0, 2)];
/// IPv6 addresses of public servers.
pub const PUBLIC_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2a00, 0x77, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2a00, 0x77, 0, 0, 0, 0, 0, 2)];
/// Network between two routers of one site: of a carrier, or of a house with two routers.
const BETWEEN: [u8; 3] = [100, 64, 9];
/// The home network.
const HOME: [u8; 3] = [192, 168, 7];
/// Network of the DHT nodes: the first has .1.
const DHT_NETWORK: Ipv4Addr = Ipv4Addr::new(11, 2, 0, 0);
/// Port of the DHT nodes.
const DHT_PORT: u16 = 6881;
/// Number of DHT nodes: enough for lookups of several hops.
const DHT_NODES: u8 = 60;
const SITES_MAX: u8 = 250;
/// Settings of routers and of the internet. An IPv6 address is usable at once, as no other host is
/// on the link.
const ROUTER: [(&str, &str); 4] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
];
const HOST: [(&str, &str); 2] =
    [("net/ipv6/conf/default/accept_dad", "0"), ("net/ipv6/conf/all/accept_dad", "0")];

/// The internet, and the number of its sites.
#[derive(Debug)]
pub struct Lab {
    internet: Namespace,
    sites: u8,
}

/// A host at a site of its own; the site ends when this value is dropped.
#[derive(Debug)]
pub struct Host {
    host: Namespace,
    _routers: Vec<Namespace>,
    public: Ipv4Addr,
}

/// A server of `wraith-netlab`; it ends when this value is dropped.
#[derive(Debug)]
pub struct Server(Child);

impl Lab {
    pub fn new() -> Result<Self> {
        let internet = Namespace::new(&ROUTER)?;
        for address in PUBLIC.map(IpAddr::from).into_iter().chain(PUBLIC_V6.map(IpAddr::from)) {
            ip(&internet, &format!("addr add {address} dev lo"))?;
        }
        Ok(Self { internet, sites: 0 })
    }

    /// Returns a command that will run on the internet, at the addresses [`PUBLIC`] and
    /// [`PUBLIC_V6`].
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.internet.command(program)
    }

    /// Creates a host at a new site with this access.
    pub fn host_behind(&mut self, profile: &Profile) -> Result<Host> {
        ensure!(self.sites < SITES_MAX, "a lab has {SITES_MAX} sites at most");
        self.sites += 1;
        let site = self.sites;
        let hops = hops(site, profile.nats.len());
        let mut chain = vec![Namespace::new(&HOST)?];
        for _ in profile.nats {
            chain.push(Namespace::new(&ROUTER)?);
        }
        for (at, hop) in hops.iter().enumerate() {
            let (inner, last) = (&chain[at], at + 1 == hops.len());
            let outer = chain.get(at + 1).unwrap_or(&self.internet);
            let port = if last { format!("site{site}") } else { "lan".to_owned() };
            join(inner, outer, &port, hop)?;
        }
        for (at, nat) in profile.nats.iter().enumerate() {
            // Only the home router blocks traffic.
            let allowed =
                if at == 0 { profile.allowed } else { super::profile::Allowed::Everything };
            let (outside, inside) = (hops[at + 1].inner, hops[at].inner);
            let rules = rules(*nat, allowed, outside, inside);
            load(|program| chain[at + 1].command(program), &rules)?;
        }
        if profile.ipv6 {
            ensure!(chain.len() == 2, "the lab gives IPv6 to a site with one router");
            self.connect_ipv6(site, &chain[0], &chain[1])?;
        }
        let host = chain.remove(0);
        let public = hops.last().context("a site has a link to the internet")?.inner;
        Ok(Host { host, _routers: chain, public })
    }

    /// Gives the site an IPv6 network behind the router, and a route to it.
    fn connect_ipv6(&self, site: u8, host: &Namespace, router: &Namespace) -> Result<()> {
        let (wan, lan) = (format!("2a00:77:{site:x}"), format!("2a00:77:{site:x}:1"));
        ip(&self.internet, &format!("addr add {wan}::1/64 dev site{site}"))?;
        ip(router, &format!("addr add {wan}::2/64 dev wan"))?;
        ip(router, &format!("addr add {lan}::1/64 dev lan"))?;
        ip(host, &format!("addr add {lan}::2/64 dev wan"))?;
        ip(&self.internet, &format!("-6 route add {lan}::/64 via {wan}::2"))?;
        ip(router, &format!("-6 route add default via {wan}::1"))?;
        ip(host, &format!("-6 route add default via {lan}::1"))
    }

    /// Starts the servers of `nat-probe` at the public addresses; `program` is `wraith-netlab`.
    pub fn serve_nat_probes(&self, program: &Path) -> Result<[Server; 2]> {
        let start =
            |[a, b]: [String; 2]| self.start_server(program, &["nat-server", "--servers", &a, &b]);
        Ok([start(PUBLIC.map(|ip| ip.to_string()))?, start(PUBLIC_V6.map(|ip| ip.to_string()))?])
    }

    /// Starts a Mainline DHT, and returns its bootstrap address.
    pub fn serve_dht(&self, program: &Path) -> Result<(Server, String)> {
        ip(&self.internet, &format!("route add local {DHT_NETWORK}/24 dev lo"))?;
        let (network, nodes) = (DHT_NETWORK.to_string(), DHT_NODES.to_string());
        let words = ["dht-nodes", "--network", &network, "--nodes", &nodes];
        let first = Ipv4Addr::from_bits(DHT_NETWORK.to_bits() + 1);
        Ok((self.start_server(program, &words)?, format!("{first}:{DHT_PORT}")))
    }

    /// Starts a server on the internet, and waits until it is ready.
    fn start_server(&self, program: &Path, words: &[&str]) -> Result<Server> {
        let mut command = self.command(program);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("it was piped")?;
        let server = Server(child);
        expect_ready(&mut BufReader::new(out), words[0])?;
        Ok(server)
    }
}

impl Host {
    /// Returns a command that will run on this host.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.host.command(program)
    }

    /// The host's address as seen from the internet.
    pub fn public(&self) -> Ipv4Addr {
        self.public
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// One link of a site: the address towards the host, and the one towards the internet.
#[derive(Clone, Copy, Debug)]
struct Hop {
    inner: Ipv4Addr,
    outer: Ipv4Addr,
}

/// The links from the host to the internet through `routers` routers.
fn hops(site: u8, routers: usize) -> Vec<Hop> {
    let hop = |[a, b, c]: [u8; 3]| Hop {
        inner: Ipv4Addr::new(a, b, c, 2),
        outer: Ipv4Addr::new(a, b, c, 1),
    };
    let mut hops = Vec::new();
    if routers > 0 {
        hops.push(hop(HOME));
        hops.extend((1..routers).map(|_| hop(BETWEEN)));
    }
    hops.push(hop([11, 1, site]));
    hops
}

/// Connects two namespaces: `wan` is the inner end, `port` the outer one. Sets the default route of
/// the inner end.
fn join(inner: &Namespace, outer: &Namespace, port: &str, hop: &Hop) -> Result<()> {
    let pid = inner.pid().to_string();
    let words = ["link", "add", port, "type", "veth", "peer", "name", "wan", "netns", &pid];
    run(inside(outer.pid(), "ip").args(words))?;
    ip(outer, &format!("addr add {}/30 dev {port}", hop.outer))?;
    ip(outer, &format!("link set {port} up"))?;
    ip(inner, &format!("addr add {}/30 dev wan", hop.inner))?;
    ip(inner, "link set wan up")?;
    ip(inner, &format!("route add default via {}", hop.outer))
}

fn ip(namespace: &Namespace, words: &str) -> Result<()> {
    run(namespace.command("ip").args(words.split_whitespace()))
}

/// Loads nftables rules in the namespace in which `command` runs programs.
pub fn load(command: impl Fn(&str) -> Command, rules: &str) -> Result<()> {
    let mut nft = command("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("nft is not installed (Debian: apt-get install nftables)")?;
    let mut stdin = nft.stdin.take().context("it was piped")?;
    stdin.write_all(rules.as_bytes())?;
    drop(stdin);
    let out = nft.wait_with_output()?;
    ensure!(out.status.success(), "nft: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(())
}
