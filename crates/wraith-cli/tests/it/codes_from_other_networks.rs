//! Short codes and hosts on other networks: a router forwards their packets to the sender, and the
//! sender neither answers them nor counts them as guesses.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;
use wraith_discovery::lan::{GROUP_V4, GROUP_V6, PORT, seal};
use wraith_discovery::pake::Joiner;
use wraith_discovery::{Code, TicketSide};

use crate::support::cable::{enter, inside, ip};
use crate::support::process::HANG;
use crate::support::{self, Process, World, expect_arrival};

const SENDER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 74, 1, 2)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2)),
];

/// A sender's machine and a stranger's, with a router between them. Drop removes them.
struct Routed {
    sender: String,
    router: String,
    stranger: String,
}

impl Routed {
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let name = |what| format!("wraith-{what}-{id}");
        let routed = Self { sender: name("near"), router: name("router"), stranger: name("far") };
        let Self { sender, router, stranger } = &routed;
        if ![sender, router, stranger].iter().all(|name| ip(&["netns", "add", name])) {
            return None;
        }
        for (host, network, number) in [(sender, "near", 1), (stranger, "far", 2)] {
            let link = ["link", "add", network, "type", "veth", "peer", "name", "eth0", "netns"];
            assert!(ip(&[&["-n", router][..], &link, &[host]].concat()));
            let addresses = |host| {
                [format!("10.74.{number}.{host}/24"), format!("2001:db8:{number}::{host}/64")]
            };
            for (at, device, host) in [(router, network, 1), (host, "eth0", 2)] {
                assert!(ip(&["-n", at, "link", "set", "lo", "up"]));
                assert!(ip(&["-n", at, "link", "set", device, "up"]));
                for address in addresses(host) {
                    let add = ["-n", at, "addr", "add", &address, "dev", device];
                    let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
                    assert!(ip(&[&add, nodad].concat()));
                }
            }
            let [v4, v6] = [format!("10.74.{number}.1"), format!("2001:db8:{number}::1")];
            assert!(ip(&["-n", host, "route", "add", "default", "via", &v4]));
            assert!(ip(&["-n", host, "-6", "route", "add", "default", "via", &v6]));
        }
        let mut forward = Command::new("sysctl");
        forward.args(["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
        assert!(inside(router, &forward).status().unwrap().success());
        Some(routed)
    }

    /// Runs `work` in a thread in a namespace.
    fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
        let run = || {
            enter(name);
            work()
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        for name in [&self.sender, &self.router, &self.stranger] {
            ip(&["netns", "del", name]);
        }
    }
}

fn socket(of: IpAddr) -> UdpSocket {
    let any: IpAddr =
        if of.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).unwrap()
}

/// Sends an opening with the right number and wrong words.
fn open(socket: &UdpSocket, to: SocketAddr, code: &Code) {
    let hello = Joiner::new(code, TicketSide::Creator).hello();
    // A salt must only be new.
    let salt = *hello.first_chunk().unwrap();
    socket.send_to(&seal(code.nameplate(), salt, &hello, &[]).unwrap(), to).unwrap();
}

/// Opens at the group until the sender answers.
fn wait_for_answer(socket: &UdpSocket, to: SocketAddr, code: &Code) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let deadline = Instant::now() + HANG;
    let is_answered = |deadline| {
        open(socket, to, code);
        assert!(Instant::now() < deadline, "the sender does not answer its own network");
        socket.recv_from(&mut [0; 1000]).is_ok()
    };
    while !is_answered(deadline) {}
}

/// Asserts that a packet of the stranger reaches the sender's machine, and its answer comes back.
fn check_route(routed: &Routed, at: IpAddr) {
    let echo = Routed::in_namespace(&routed.sender, || UdpSocket::bind((at, 0)).unwrap());
    let stranger = Routed::in_namespace(&routed.stranger, || socket(at));
    for socket in [&echo, &stranger] {
        socket.set_read_timeout(Some(HANG)).unwrap();
    }
    stranger.send_to(b"?", echo.local_addr().unwrap()).unwrap();
    let (_, from) = echo.recv_from(&mut [0; 10]).unwrap();
    echo.send_to(b"!", from).unwrap();
    stranger.recv_from(&mut [0; 10]).unwrap();
}

#[test]
fn a_short_code_is_silent_to_every_other_network_and_stays_good() {
    let Some(routed) = Routed::new() else {
        return support::skipped("network namespaces need root and ip");
    };
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--lan", "all"]).arg(&film);
    let mut sender = Process::start("send", &mut inside(&routed.sender, &send));
    let code = sender.code();
    let wrong: Code = support::other_words(&code).parse().unwrap();

    for at in SENDER {
        check_route(&routed, at);
        let near = Routed::in_namespace(&routed.router, || {
            let socket = socket(at);
            if at.is_ipv4() {
                let own = Ipv4Addr::new(10, 74, 1, 1);
                SockRef::from(&socket).set_multicast_if_v4(&own).unwrap();
            }
            socket
        });
        let group = match at {
            IpAddr::V4(_) => SocketAddrV4::new(GROUP_V4, PORT).into(),
            IpAddr::V6(_) => {
                let link = || std::fs::read_to_string("/proc/thread-self/net/dev_mcast").unwrap();
                let index = Routed::in_namespace(&routed.router, || index_of(&link(), "near"));
                SocketAddrV6::new(GROUP_V6, PORT, 0, index).into()
            }
        };
        let far = Routed::in_namespace(&routed.stranger, || socket(at));
        for _ in 0..10 {
            open(&far, SocketAddr::new(at, PORT), &wrong);
        }
        wait_for_answer(&near, group, &wrong);
        far.set_nonblocking(true).unwrap();
        let answer = far.recv_from(&mut [0; 1000]);
        assert_eq!(answer.map_err(|e| e.kind()), Err(ErrorKind::WouldBlock), "from {at}");
    }

    let mut receive = world.wraith("receiver");
    receive
        .args(["receive", "--json", "--yes", "--lan", "all", "-o"])
        .arg(world.target())
        .arg(code);
    let receiver = Process::start("receive", &mut inside(&routed.router, &receive));
    expect_arrival(receiver, sender, &film, &world.target());
}

/// Returns the index of an interface, from the kernel's list of multicast addresses.
fn index_of(list: &str, name: &str) -> u32 {
    let mut words = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = words.find(|words| words.get(1) == Some(&name)).unwrap();
    line[0].parse().unwrap()
}
