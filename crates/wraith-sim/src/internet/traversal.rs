//! NAT traversal from a relay to a direct path, as an application does it with the core: connect
//! over the relay, ask reflectors, exchange candidates, punch, and migrate.
//!
//! [`traverse`] simulates it for one pair of networks, [`matrix`] for all pairs. Each side uses
//! only information that it received.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use wraith_core::punch::PeerStart;
use wraith_core::{AnswerMode, PathAddr, PunchEvent, PunchId, Role, Time, TransportConfig};

use super::{Behaviour, HostIndex, Internet, NatBehaviours, PUBLIC};
use crate::link::{Delay, Rate};
use crate::{Exchange, Rng, hops};

/// Network of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A public address.
    Public,
    /// Behind one NAT.
    Home(Behaviour),
    /// Behind a home NAT that is behind a provider's NAT.
    Carrier {
        /// The home NAT.
        home: Behaviour,
        /// The provider's NAT.
        carrier: Behaviour,
    },
    /// UDP is blocked; the relay is reached in another way.
    NoUdp,
    /// IPv6 behind a firewall, and IPv4 behind a NAT.
    V6 {
        /// The IPv4 NAT.
        home: Behaviour,
    },
}

impl Network {
    /// All networks of the matrix, by name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("public", Self::Public),
        ("full cone", Self::Home(NatBehaviours::FULL_CONE)),
        ("restricted", Self::Home(NatBehaviours::RESTRICTED)),
        ("port-restricted", Self::Home(NatBehaviours::PORT_RESTRICTED)),
        ("symmetric counting", Self::Home(NatBehaviours::SYMMETRIC_COUNTING)),
        ("symmetric random", Self::Home(NatBehaviours::SYMMETRIC_RANDOM)),
        (
            "double",
            Self::Carrier {
                home: NatBehaviours::PORT_RESTRICTED,
                carrier: NatBehaviours::RESTRICTED,
            },
        ),
        (
            "carrier-grade",
            Self::Carrier {
                home: NatBehaviours::PORT_RESTRICTED,
                carrier: NatBehaviours::FULL_CONE,
            },
        ),
        ("no UDP", Self::NoUdp),
        ("IPv6 firewall", Self::V6 { home: NatBehaviours::SYMMETRIC_RANDOM }),
    ];
}

/// Result of a pair of networks.
#[derive(Clone, Debug)]
pub struct Report {
    /// Final path of the first host's packets.
    pub path: PathAddr,
    /// Whether both sides use the direct path.
    pub direct: bool,
    /// Time from the connection over the relay until both sides use the direct path.
    pub took: Option<Duration>,
    /// Datagrams that both sides spent on reflectors and probes.
    pub packets: u64,
    /// Whether every byte arrived.
    pub complete: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match (self.complete, self.direct) {
            (false, _) => "FAILED",
            (true, true) => "direct",
            (true, false) => "relayed",
        };
        let took = self.took.map_or("-".into(), |took| format!("{} ms", took.as_millis()));
        write!(f, "{path:8} {took:>8} {:>4} packets", self.packets)
    }
}

/// Secret shared by both sides and the reflectors.
const REFLECTOR_SECRET: [u8; 32] = [5; 32];
const REFLECTORS: [([u8; 4], u16); 2] = [([192, 0, 2, 10], 3478), ([192, 0, 2, 11], 3478)];
/// Maximum delay between the starts of the two sides' punches.
const LATE_MAX: Duration = Duration::from_millis(400);
/// Time limit of a traversal.
const TRAVERSAL_TIMEOUT: Duration = Duration::from_secs(40);

/// One side of a traversal.
#[derive(Debug)]
struct Side {
    host: HostIndex,
    role: Role,
    /// Running observations, in the order in which their results are listed.
    questions: Vec<(PunchId, Option<SocketAddr>, bool)>,
    told: bool,
    punch: Option<PunchId>,
    /// Candidates of the peer that are being tried.
    known: Vec<SocketAddr>,
    moved: bool,
    /// Additional delay before its punch.
    late: Duration,
    read: usize,
}

/// Simulates a traversal for two hosts in these networks, with random delays between the actions of
/// the two sides.
pub fn traverse(seed: u64, networks: [Network; 2]) -> Report {
    traverse_with(seed, networks, |_, _| {})
}

/// As [`traverse`], with an interfering callback after every step.
pub fn traverse_with(
    seed: u64,
    networks: [Network; 2],
    mut meddle: impl FnMut(&mut Internet, [HostIndex; 2]),
) -> Report {
    let mut rng = Rng::new(seed, 77);
    let (mut net, hosts) = build(seed, networks, &mut rng);
    let way = || hops![Delay::ms(30)];
    let relay = net.add_relay(hosts, [way(), way()]);
    let plan = Exchange::streams(1, 1_000_000, 1_000_000).eager().at_once(1);
    net.connect(hosts[0], hosts[1], relay, plan);
    let connected = |net: &mut Internet| {
        hosts.iter().all(|host| net.party(*host).is_some_and(|party| party.is_connected()))
    };
    net.run_until(Time::ZERO + Duration::from_secs(10), connected);
    let began = net.now();
    let roles = [Role::Initiator, Role::Responder];
    let mut sides = [0, 1].map(|i| {
        net.allow_punching(hosts[i]);
        let late = rng.up_to(LATE_MAX);
        let (host, role) = (hosts[i], roles[i]);
        Side {
            host,
            role,
            questions: Vec::new(),
            told: false,
            punch: None,
            known: Vec::new(),
            moved: false,
            late,
            read: 0,
        }
    });
    sides.iter_mut().for_each(|side| side.query_reflectors(&mut net));
    let deadline = net.now() + TRAVERSAL_TIMEOUT;
    let mut took = None;
    while net.now() < deadline && net.step() {
        for side in &mut sides {
            side.act(&mut net, began);
        }
        meddle(&mut net, hosts);
        let remotes = hosts.map(|host| net.remote(host));
        let direct = remotes.iter().all(|r| matches!(r, Some(PathAddr::Ip(_))));
        if direct {
            took.get_or_insert(net.now() - began);
        }
        let ended = sides.iter().all(|side| side.ended(&net));
        if done(&net, hosts) && ended && (direct || !sides.iter().any(|side| side.moved)) {
            break;
        }
    }
    let path = net.remote(hosts[0]).unwrap_or(relay);
    let direct = took.is_some() && path != relay;
    let packets = hosts.iter().map(|host| spent(&net, *host)).sum();
    Report { path, direct, took: took.filter(|_| direct), packets, complete: done(&net, hosts) }
}

/// Simulates every pair of [`Network::ALL`]. Returns a report for each of `seeds`.
pub fn matrix(seeds: std::ops::Range<u64>) -> Vec<([&'static str; 2], Vec<Report>)> {
    let mut rows = Vec::new();
    for (i, (first, one)) in Network::ALL.into_iter().enumerate() {
        for (second, other) in &Network::ALL[i..] {
            let reports = seeds.clone().map(|seed| traverse(seed, [one, *other])).collect();
            rows.push(([first, *second], reports));
        }
    }
    rows
}

fn done(net: &Internet, hosts: [HostIndex; 2]) -> bool {
    hosts.iter().all(|host| net.party(*host).is_some_and(|party| party.is_done()))
}

fn spent(net: &Internet, host: HostIndex) -> u64 {
    let counts = |event: &PunchEvent| match event {
        PunchEvent::Ended { counts, .. } => counts.sent,
        PunchEvent::Observed(_) => 1,
        _ => 0,
    };
    net.seen(host).punches.iter().map(|(_, _, event)| counts(event)).sum()
}

/// Builds two distant hosts, each 10 to 40 ms from the centre of the public internet, and the
/// reflectors in that centre.
fn build(seed: u64, networks: [Network; 2], rng: &mut Rng) -> (Internet, [HostIndex; 2]) {
    let mut net = Internet::new(seed);
    for (ip, port) in REFLECTORS {
        net.add_reflector((ip, port).into(), &REFLECTOR_SECRET);
    }
    let mut number = 0;
    let hosts = networks.map(|network| {
        number += 1;
        let delay = rng.between(10, 40);
        let way = || hops![Rate::mbit(20), Delay::ms(delay)];
        let line = || [way(), way()];
        let host = net.add_host("host", TransportConfig::default());
        let private = SocketAddr::from(([192, 168, 1, 10 + number], 5000));
        let (realm, address) = match network {
            Network::Public | Network::NoUdp => {
                (PUBLIC, SocketAddr::from(([198, 51, 100, number], 5000)))
            }
            Network::Home(home) | Network::V6 { home } => {
                (net.add_gateway(PUBLIC, [203, 0, 113, number], home), private)
            }
            Network::Carrier { home, carrier } => {
                let inner = net.add_gateway(PUBLIC, [203, 0, 113, number], carrier);
                (net.add_gateway(inner, [100, 64, 0, number], home), private)
            }
        };
        net.add_interface(host, (realm, address), line());
        if let Network::V6 { .. } = network {
            let ip: std::net::IpAddr = format!("2001:db8:{number}::1").parse().expect("an address");
            let inside = net.add_gateway(PUBLIC, ip, NatBehaviours::FIREWALL);
            net.add_interface(host, (inside, SocketAddr::new(ip, 5000)), line());
        }
        net.block_udp(host, network == Network::NoUdp);
        host
    });
    (net, hosts)
}

impl Side {
    /// Asks the reflectors for this host's observed address.
    fn query_reflectors(&mut self, net: &mut Internet) {
        for (ip, port) in REFLECTORS {
            let id = net.with_endpoint(self.host, |now, endpoint| {
                endpoint.punches().observe(
                    now,
                    &REFLECTOR_SECRET,
                    (ip, port).into(),
                    AnswerMode::Itself,
                )
            });
            self.questions.push((id.expect("few are under way"), None, false));
        }
    }

    fn act(&mut self, net: &mut Internet, began: Time) {
        let news: Vec<_> = net.seen(self.host).punches[self.read..].to_vec();
        self.read += news.len();
        for (_, id, event) in news {
            if let Some(question) = self.questions.iter_mut().find(|(of, ..)| *of == id) {
                question.2 = true;
                if let PunchEvent::Observed(address) = event {
                    question.1 = Some(address);
                }
            } else if let PunchEvent::Ended { best: Some(best), .. } = event
                && let Some(PathAddr::Via(_)) = net.remote(self.host)
            {
                self.moved = net.migrate_to(self.host, best.into());
            }
        }
        if !self.told && self.questions.iter().all(|(_, _, over)| *over) {
            self.told = true;
            let observed = self.questions.iter().filter_map(|(_, address, _)| *address);
            let mut candidates = net.addresses(self.host);
            candidates.extend(observed);
            candidates.dedup();
            net.with_connection(self.host, |_, c| c.set_candidates(candidates));
        }
        let candidates = net.seen(self.host).candidates.clone();
        let due = net.now() >= began + self.late;
        if let Some(id) = self.punch
            && candidates != self.known
        {
            net.with_endpoint(self.host, |now, endpoint| {
                endpoint.punches().add_candidates(now, id, &candidates);
            });
            self.known.clone_from(&candidates);
        }
        if self.told && self.punch.is_none() && !candidates.is_empty() && due {
            let secret = net.with_connection(self.host, |_, c| c.export_secret(b"punch 1"));
            let secret = secret.flatten().expect("it is connected");
            let role = self.role;
            let id = net.with_endpoint(self.host, |now, endpoint| {
                endpoint.punches().punch(now, &secret, role, PeerStart::Now, &candidates)
            });
            self.punch = id.ok();
            self.known = candidates;
        }
    }

    fn ended(&self, net: &Internet) -> bool {
        let ended = |event: &PunchEvent| matches!(event, PunchEvent::Ended { .. });
        let punches = &net.seen(self.host).punches;
        punches.iter().any(|(_, id, event)| Some(*id) == self.punch && ended(event))
    }
}
