//! An internet of network namespaces: one that routes and in which public servers run, and sites behind it.
//!
//! ```text
//!  host ──lan── router ──wan── … ──wan── internet (PUBLIC, both families)
//!  192.168.7.2  192.168.7.1   11.1.N.2   11.1.N.1
//! ```
//!
//! All homes have the same private addresses, as in life. The addresses that stand for public ones are such that programs take
//! them for global; no namespace has a way out of this machine.

use std::io::{BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::profile::{Profile, rules};
use crate::netlab::namespace::{Namespace, expect_ready, inside, run};

/// Addresses of public servers: two, so that one can answer for the other.
pub const PUBLIC: [Ipv4Addr; 2] = [Ipv4Addr::new(11, 0, 0, 1), Ipv4Addr::new(11, 0, 0, 2)];
/// The same of IPv6.
pub const PUBLIC_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2a00, 0x77, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2a00, 0x77, 0, 0, 0, 0, 0, 2)];
/// Links between two routers of one site: of a carrier, and of a house with two boxes.
const BETWEEN: [u8; 3] = [100, 64, 9];
/// The network at home.
const HOME: [u8; 3] = [192, 168, 7];
/// Nodes of a DHT: the first has .1.
const DHT_NETWORK: Ipv4Addr = Ipv4Addr::new(11, 2, 0, 0);
/// Where they listen.
const DHT_PORT: u16 = 6881;
/// As many as make lookups of several hops.
const DHT_NODES: u8 = 60;
const SITES_MAX: u8 = 250;
/// Of a router and of the internet. An IPv6 address is good at once: nobody else is on the cable.
const ROUTER: [(&str, &str); 4] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
];
const HOST: [(&str, &str); 2] =
    [("net/ipv6/conf/default/accept_dad", "0"), ("net/ipv6/conf/all/accept_dad", "0")];

/// The internet, and how many sites are at it.
#[derive(Debug)]
pub struct Lab {
    internet: Namespace,
    sites: u8,
}

/// A host at a site of its own; the site ends with it.
#[derive(Debug)]
pub struct Host {
    host: Namespace,
    _routers: Vec<Namespace>,
    public: Ipv4Addr,
}

/// Servers of `wraith-netlab`; end with this value.
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

    /// A command that will run on the internet, where the addresses [`PUBLIC`] and [`PUBLIC_V6`] are.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.internet.command(program)
    }

    /// A host at a new site with this access.
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
            // What is blocked, is so by the box at home.
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

    /// A network of the site's own behind the router, and the way to it.
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

    /// Starts what `nat-probe` asks, at the public addresses; `program` is `wraith-netlab`.
    pub fn serve_nat_probes(&self, program: &Path) -> Result<[Server; 2]> {
        let start = |[a, b]: [String; 2]| self.serve(program, &["nat-server", "--servers", &a, &b]);
        Ok([start(PUBLIC.map(|ip| ip.to_string()))?, start(PUBLIC_V6.map(|ip| ip.to_string()))?])
    }

    /// Starts a Mainline DHT, and says where to begin in it.
    pub fn serve_dht(&self, program: &Path) -> Result<(Server, String)> {
        ip(&self.internet, &format!("route add local {DHT_NETWORK}/24 dev lo"))?;
        let (network, nodes) = (DHT_NETWORK.to_string(), DHT_NODES.to_string());
        let words = ["dht-nodes", "--network", &network, "--nodes", &nodes];
        let first = Ipv4Addr::from_bits(DHT_NETWORK.to_bits() + 1);
        Ok((self.serve(program, &words)?, format!("{first}:{DHT_PORT}")))
    }

    /// A server on the internet, which has said that it is ready.
    fn serve(&self, program: &Path, words: &[&str]) -> Result<Server> {
        let mut command = self.command(program);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("it was piped")?;
        let server = Server(child);
        expect_ready(&mut BufReader::new(out), words[0])?;
        Ok(server)
    }
}

impl Host {
    /// A command that will run on this host.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.host.command(program)
    }

    /// The address under which the internet sees it.
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

/// From the host to the internet, past so many routers.
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

/// A cable: `wan` at the inner end, `port` at the outer, and the inner end's default route.
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

/// Loads rules of nftables in the namespace in which `command` makes commands.
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
