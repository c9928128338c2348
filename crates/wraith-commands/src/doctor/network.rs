//! Checks datagrams on this machine: kernel offloads and buffers, addresses, and our protocol over
//! each address.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use wraith_command_text::units::Bytes;
use wraith_transport::{
    AccessKey, Config, Connection, Endpoint, EndpointConfig, SecretIdentity, SocketCapabilities,
    block_on, block_on_timeout,
};

use super::Check;
use crate::failure::plain;

/// Minimum MTU of a link for the protocol's smallest datagrams (SPEC §8).
const SMALLEST_MTU: u32 = 1280;
/// Bytes sent in each trial connection: enough for a flow of packets and acknowledgements.
const TRIAL_BYTES: usize = 1 << 20;
/// Timeout for the handshake and the trial data on one machine, which may be busy.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn check(report: &mut impl FnMut(Check)) {
    match SocketCapabilities::measure(false).or_else(|_| SocketCapabilities::measure(true)) {
        Ok(facts) => {
            report(datagrams(&facts));
            report(batches(&facts));
            report(buffers(&facts));
        }
        Err(error) => {
            let meaning = "a UDP socket cannot be opened, and wraith needs one";
            let check = Check::fail("datagrams", plain(&error), meaning);
            report(check.next("is this a sandbox without a network?"));
        }
    }
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    report(addresses(&all.iter().map(if_addrs::Interface::ip).collect::<Vec<_>>()));
    report(links(&all));
    report(sessions(all.iter().map(if_addrs::Interface::ip)));
}

fn datagrams(facts: &SocketCapabilities) -> Check {
    let found = format!("{} of {} arrive on loopback", facts.received, facts.sent);
    if facts.received == facts.sent {
        return Check::ok("datagrams", found, "UDP works on this machine");
    }
    Check::fail(
        "datagrams",
        found,
        "this machine loses UDP packets internally, so transfers are slow or stop",
    )
    .next("look for a firewall rule on the interface lo")
}

fn batches(facts: &SocketCapabilities) -> Check {
    let word = |on: bool| if on { "on" } else { "off" };
    let found = format!(
        "sending (GSO) {}, receiving (GRO) {}",
        word(facts.segmentation),
        word(facts.merging)
    );
    if facts.segmentation && facts.merging {
        return Check::ok("batches", found, "many datagrams take one system call");
    }
    Check::warn(
        "batches",
        found,
        "each datagram needs a system call: fast links take more processor time",
    )
    .next("Linux 5.0 and later support both; some sandboxes and virtual devices turn them off")
}

fn buffers(facts: &SocketCapabilities) -> Check {
    let least = facts.receive_buffer.min(facts.send_buffer);
    let of = |bytes: usize| Bytes(bytes as u64);
    let (receive, send) = (of(facts.receive_buffer), of(facts.send_buffer));
    let found =
        format!("{receive} to receive, {send} to send, of the wanted {}", of(facts.buffer_wanted));
    if least >= facts.buffer_wanted {
        return Check::ok(
            "buffers",
            found,
            "the kernel can buffer bursts while the program is busy",
        );
    }
    let wanted = facts.buffer_wanted;
    Check::warn(
        "buffers",
        found,
        "above a few Gbit/s, or on a busy machine, packets are lost here",
    )
    .next(format!(
        "as root: sysctl -w net.core.rmem_max={wanted} net.core.wmem_max={wanted} (permanently: in a file in /etc/sysctl.d)"
    ))
}

/// The kind of an address, from the most to the least reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    PublicV6,
    PublicV4,
    Private,
    UniqueLocal,
    Shared,
    LinkLocal,
    Loopback,
    Other,
}

impl Kind {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Loopback,
            IpAddr::V4(ip) if ip.is_private() => Self::Private,
            IpAddr::V4(ip) if is_shared(ip) => Self::Shared,
            IpAddr::V4(ip) if ip.is_link_local() => Self::LinkLocal,
            IpAddr::V4(ip) if is_special_v4(ip) => Self::Other,
            IpAddr::V4(_) => Self::PublicV4,
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Self::LinkLocal,
            IpAddr::V6(ip) if ip.is_unique_local() => Self::UniqueLocal,
            IpAddr::V6(ip) if is_global_v6(ip) => Self::PublicV6,
            IpAddr::V6(_) => Self::Other,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::PublicV6 => "public IPv6",
            Self::PublicV4 => "public IPv4",
            Self::Private => "private IPv4",
            Self::UniqueLocal => "local IPv6",
            Self::Shared => "carrier's IPv4 (CGNAT)",
            Self::LinkLocal => "link-local",
            Self::Loopback => "loopback",
            Self::Other => "special",
        }
    }
}

/// Returns whether a provider shares this address among its customers (RFC 6598); VPNs use this
/// range too.
fn is_shared(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    a == 100 && (64..128).contains(&b)
}

fn is_special_v4(ip: Ipv4Addr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_documentation()
}

/// Returns whether this is a global unicast address: 2000::/3, without the documentation prefix.
fn is_global_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    a & 0xe000 == 0x2000 && !(a == 0x2001 && b == 0xdb8)
}

fn addresses(ips: &[IpAddr]) -> Check {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for ip in ips {
        *kinds.entry(Kind::of(*ip)).or_default() += 1;
    }
    let list: Vec<_> =
        kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let found = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    let has = |kind| kinds.contains_key(&kind);
    if has(Kind::PublicV4) || has(Kind::PublicV6) {
        let meaning = "peers can reach this machine directly, unless a firewall blocks UDP";
        return Check::ok("addresses", found, meaning);
    }
    let forward = "to be reachable from outside: --listen [::]:PORT with that UDP port forwarded by the router; or let the other side send";
    if has(Kind::Private) || has(Kind::UniqueLocal) {
        return Check::ok(
            "addresses",
            found,
            "peers on this network can reach this machine directly",
        )
        .next(forward);
    }
    if has(Kind::Shared) {
        let meaning = "the provider shares one address among customers: this machine is not reachable from outside";
        return Check::warn("addresses", found, meaning)
            .next("let the side with a public address send, or use IPv6 or a VPN");
    }
    if kinds.keys().all(|kind| *kind == Kind::LinkLocal) {
        let meaning = "this machine cannot be reached, not even by its own programs";
        return Check::fail("addresses", found, meaning)
            .next("connect to a network; as root: ip link set lo up");
    }
    Check::warn("addresses", found, "there is no network: this machine can reach only itself")
        .next("connect to a network")
}

fn links(all: &[if_addrs::Interface]) -> Check {
    let mut names: Vec<_> = all.iter().filter(|i| !i.is_loopback()).map(|i| &*i.name).collect();
    names.sort_unstable();
    names.dedup();
    let mtu = |name: &str| {
        let text = fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?;
        text.trim().parse::<u32>().ok()
    };
    let known: Vec<_> = names.iter().filter_map(|name| Some((*name, mtu(name)?))).collect();
    let list: Vec<_> = known.iter().map(|(name, mtu)| format!("{name} {mtu}")).collect();
    if known.is_empty() {
        return Check::none(
            "links (MTU)",
            "no interface found",
            "the datagram size is found by probing",
        );
    }
    let found = list.join(", ");
    match known.iter().find(|(_, mtu)| *mtu < SMALLEST_MTU) {
        Some((name, _)) => {
            let meaning = format!(
                "{name} does not support packets of {SMALLEST_MTU} bytes, which the protocol needs"
            );
            Check::warn("links (MTU)", found, meaning)
                .next(format!("as root: ip link set {name} mtu {SMALLEST_MTU}"))
        }
        None => {
            Check::ok("links (MTU)", found, "datagrams use the largest size that the path supports")
        }
    }
}

/// Runs our protocol between a sender's and a receiver's socket, over every address of this
/// machine.
fn sessions(ips: impl Iterator<Item = IpAddr>) -> Check {
    const NAME: &str = "protocol";
    let mut ips: Vec<IpAddr> = ips.filter(|ip| Kind::of(*ip) != Kind::LinkLocal).collect();
    ips.sort_unstable();
    ips.dedup();
    if ips.is_empty() {
        let meaning = "this machine has no address, so nothing can be sent or received";
        return Check::fail(NAME, "no address to test", meaning)
            .next("connect it to a network; as root: ip link set lo up");
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for ip in ips {
        match try_session(ip) {
            Ok(mtu) => good.push(format!("{ip} ({mtu})")),
            Err(why) => bad.push(format!("{ip}: {why}")),
        }
    }
    if bad.is_empty() {
        let found = format!("encrypted, with datagrams of: {}", good.join(", "));
        return Check::ok(
            NAME,
            found,
            "a handshake and data get through between two sockets of this machine",
        );
    }
    let meaning = "a firewall on this machine blocks UDP, or the address is not usable";
    let check = match good.is_empty() {
        true => Check::fail(NAME, bad.join("; "), meaning),
        false => Check::warn(NAME, bad.join("; "), meaning),
    };
    check.next("allow UDP, or choose an address with --listen IP:PORT")
}

/// Runs a handshake and a megabyte over one of our addresses. Returns the final datagram size.
fn try_session(ip: IpAddr) -> Result<u16, String> {
    let endpoint = |accept| -> std::io::Result<(Endpoint, SecretIdentity)> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
        let open = if accept { EndpointConfig::open } else { EndpointConfig::new };
        let core = open(SecretIdentity::from_seed(seed));
        let address = SocketAddr::new(ip, 0);
        Ok((Endpoint::bind(Config::new(core).bind(address))?, SecretIdentity::from_seed(seed)))
    };
    let (sender, identity) = endpoint(true).map_err(|e| plain(&e))?;
    let (receiver, _) = endpoint(false).map_err(|e| plain(&e))?;
    let accept = {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let connection = block_on_timeout(sender.accept(), PATIENCE).flatten()?;
            drain(&connection);
            Some(())
        })
    };
    let tried = async {
        let (peer, address) = (identity.node_id(), sender.local_addr());
        let connection = receiver.connect(&[address], peer, &AccessKey::public(peer)).await;
        let connection = connection.map_err(|error| error.to_string())?;
        let (mut stream, _back) = connection.open_stream().await.map_err(|e| e.to_string())?;
        stream.write_all(&vec![0; TRIAL_BYTES]).await.map_err(|e| e.to_string())?;
        stream.finish().map_err(|e| e.to_string())?;
        stream.acked().await.map_err(|e| e.to_string())?;
        Ok(connection.stats().mtu)
    };
    let result = block_on_timeout(tried, PATIENCE).unwrap_or_else(|| Err("no answer".into()));
    receiver.start_close();
    sender.start_close();
    let _ = accept.join();
    result
}

/// Reads all data, and waits until the other side has received the acknowledgement and closes.
fn drain(connection: &Connection) {
    let Some(Ok((_, mut stream))) = block_on_timeout(connection.accept_stream(), PATIENCE) else {
        return;
    };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(1..) = block_on(stream.read(&mut buffer)) {}
    let _ = block_on_timeout(connection.closed(), PATIENCE);
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn addresses_are_of_the_kind_that_the_registries_say() {
        for (ip, kind) in [
            ("127.0.0.9", Kind::Loopback),
            ("::1", Kind::Loopback),
            ("::ffff:10.0.0.1", Kind::Private),
            ("192.168.1.1", Kind::Private),
            ("100.64.0.1", Kind::Shared),
            ("100.128.0.1", Kind::PublicV4),
            ("169.254.3.4", Kind::LinkLocal),
            ("8.8.8.8", Kind::PublicV4),
            ("192.0.2.1", Kind::Other),
            ("fe80::1", Kind::LinkLocal),
            ("fd00::1", Kind::UniqueLocal),
            ("2a00:1450::1", Kind::PublicV6),
            ("2001:db8::1", Kind::Other),
        ] {
            assert_eq!(Kind::of(ip.parse().unwrap()), kind, "{ip}");
        }
    }

    #[test]
    fn the_address_check_follows_the_best_address() {
        let of = |list: &[&str]| {
            addresses(&list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["127.0.0.1"]).status, Status::Warn);
        assert_eq!(of(&["127.0.0.1", "100.64.0.1"]).status, Status::Warn);
        let home = of(&["127.0.0.1", "192.168.1.2", "100.64.0.1"]);
        assert!(home.status == Status::Ok && home.next.unwrap().contains("--listen"));
        assert_eq!(of(&["2a00::1", "10.0.0.1"]).found, "1 public IPv6, 1 private IPv4");
    }

    #[test]
    fn small_buffers_come_with_the_command_that_grows_them() {
        let facts = SocketCapabilities {
            sent: 32,
            received: 32,
            segmentation: true,
            merging: false,
            receive_buffer: 212_992,
            send_buffer: 4 << 20,
            buffer_wanted: 4 << 20,
        };
        let check = buffers(&facts);
        assert_eq!(check.status, Status::Warn);
        assert!(check.next.unwrap().contains("sysctl -w net.core.rmem_max=4194304"));
        assert_eq!(
            buffers(&SocketCapabilities { receive_buffer: 4 << 20, ..facts }).status,
            Status::Ok
        );
        assert_eq!(batches(&facts).status, Status::Warn);
        assert_eq!(datagrams(&facts).status, Status::Ok);
        assert_eq!(datagrams(&SocketCapabilities { received: 31, ..facts }).status, Status::Fail);
    }

    #[test]
    fn a_session_passes_over_loopback() {
        assert!(try_session(Ipv4Addr::LOCALHOST.into()).unwrap() >= 1152);
        assert!(try_session("192.0.2.1".parse().unwrap()).is_err(), "it is not ours");
    }
}
