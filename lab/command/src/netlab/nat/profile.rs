//! Kinds of access to the internet, and the rules of nftables that make each.
//!
//! The kernel's own NAT (masquerade) keeps a free port, and accepts packets only from destinations
//! of that port: a port-restricted cone. The looser cones add a set of ports, or of addresses with
//! ports. Outgoing packets keep the entries of the set alive, and incoming packets that match an
//! entry are accepted too. The symmetric NATs take the port of each new flow from a counter or at
//! random.
//!
//! `--prove` measures each NAT from both sides, so the descriptions in this module are checked.

use std::fmt::Write;
use std::net::Ipv4Addr;

/// One NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nat {
    FullCone,
    AddressRestricted,
    PortRestricted,
    SymmetricCounting,
    SymmetricRandom,
}

/// Outgoing traffic that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    Everything,
    /// TCP, to any port.
    NoUdp,
    /// TCP to port 443.
    Only443,
}

/// How a host reaches the internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name for `--profiles` and tables.
    pub name: &'static str,
    /// NATs from the host outwards; a host without any is on the internet itself.
    pub nats: &'static [Nat],
    pub allowed: Allowed,
    /// Whether it also has IPv6, behind a firewall that accepts only answers.
    pub ipv6: bool,
    /// Expected result of `nat-probe`, as a line of the table.
    pub expected: &'static str,
}

const fn behind(name: &'static str, nats: &'static [Nat], expected: &'static str) -> Profile {
    Profile { name, nats, allowed: Allowed::Everything, ipv6: false, expected }
}

pub const PROFILES: [Profile; 11] = [
    behind("open", &[], "none / endpoint-independent / preserving / hairpin"),
    behind(
        "full-cone",
        &[Nat::FullCone],
        "endpoint-independent / endpoint-independent / preserving / hairpin",
    ),
    behind(
        "address-restricted",
        &[Nat::AddressRestricted],
        "endpoint-independent / address-dependent / preserving / no hairpin",
    ),
    behind("port-restricted", &[Nat::PortRestricted], PORT_RESTRICTED),
    behind(
        "symmetric-counting",
        &[Nat::SymmetricCounting],
        "address-and-port-dependent / address-and-port-dependent / sequential / no hairpin",
    ),
    behind("symmetric-random", &[Nat::SymmetricRandom], SYMMETRIC_RANDOM),
    behind("double", &[Nat::PortRestricted, Nat::PortRestricted], PORT_RESTRICTED),
    behind("carrier-grade", &[Nat::PortRestricted, Nat::FullCone], PORT_RESTRICTED),
    Profile { allowed: Allowed::NoUdp, ..behind("udp-blocked", &[Nat::PortRestricted], "no UDP") },
    Profile {
        allowed: Allowed::Only443,
        ..behind("only-443", &[Nat::PortRestricted], "no UDP, TCP 443 only")
    },
    // The hardest kind of IPv4, so that every direct path uses IPv6.
    Profile { ipv6: true, ..behind("ipv6-firewall", &[Nat::SymmetricRandom], SYMMETRIC_RANDOM) },
];

const PORT_RESTRICTED: &str =
    "endpoint-independent / address-and-port-dependent / preserving / no hairpin";
const SYMMETRIC_RANDOM: &str =
    "address-and-port-dependent / address-and-port-dependent / random / no hairpin";
/// Expected IPv6 result of profiles that have it.
pub const IPV6_FIREWALL: &str = "none / address-and-port-dependent / preserving / hairpin";

impl Profile {
    /// Returns whether two such hosts can reach each other by hole punching without port
    /// prediction. They cannot if a NAT with an unpredictable external port meets one that filters
    /// by port.
    pub fn direct_with(&self, other: &Self) -> bool {
        let udp = |profile: &Self| profile.allowed == Allowed::Everything;
        let blind = |a: &Self, b: &Self| a.symmetric() && (b.symmetric() || b.port_restricted());
        udp(self) && udp(other) && !blind(self, other) && !blind(other, self)
    }

    fn symmetric(&self) -> bool {
        self.nats.iter().any(|nat| matches!(nat, Nat::SymmetricCounting | Nat::SymmetricRandom))
    }

    fn port_restricted(&self) -> bool {
        self.nats.contains(&Nat::PortRestricted)
    }
}

/// Lifetime of an idle mapping in seconds: the kernel's default, and common in routers.
const LIFETIME_S: u32 = 30;
/// Number of ports of a counting NAT before it starts again.
const COUNTED: u16 = 4096;
/// First port of a counting NAT.
const COUNT_FROM: u16 = 20_000;

/// Returns the rules of a router with the interfaces `lan` and `wan`: this NAT for one host or
/// router behind it.
pub fn rules(nat: Nat, allowed: Allowed, outside: Ipv4Addr, inside: Ipv4Addr) -> String {
    let (let_in, map_to) = match nat {
        Nat::FullCone => (
            // Also from inside: this NAT does hairpinning.
            format!("ip daddr {outside} udp dport @mapped dnat to {inside}"),
            "oifname wan masquerade; iifname lan oifname lan masquerade".to_owned(),
        ),
        Nat::AddressRestricted => (
            format!("iifname wan ip saddr . udp dport @talked dnat to {inside}"),
            "oifname wan masquerade".to_owned(),
        ),
        Nat::PortRestricted => (String::new(), "oifname wan masquerade".to_owned()),
        Nat::SymmetricCounting => (String::new(), counting(outside)),
        Nat::SymmetricRandom => (String::new(), "oifname wan masquerade fully-random".to_owned()),
    };
    let let_out = match allowed {
        Allowed::Everything => "accept",
        Allowed::NoUdp => "meta l4proto != udp accept",
        Allowed::Only443 => "tcp dport 443 accept",
    };
    format!(
        "table ip nat {{
            set mapped {{ type inet_service; flags dynamic,timeout; timeout {LIFETIME_S}s; size 65536; }}
            set talked {{ type ipv4_addr . inet_service; flags dynamic,timeout; timeout {LIFETIME_S}s; size 65536; }}
            chain incoming {{ type nat hook prerouting priority dstnat; {let_in}
            }}
            chain outgoing {{ type nat hook postrouting priority srcnat; {map_to}
            }}
            chain seen {{ type filter hook forward priority -1;
                iifname lan oifname wan udp sport 1-65535 update @mapped {{ udp sport }} update @talked {{ ip daddr . udp sport }}
            }}
        }}
        table inet firewall {{
            chain to_router {{ type filter hook input priority 0; policy drop;
                iifname {{ lan, lo }} accept
                meta l4proto {{ icmp, ipv6-icmp }} accept
                ct state established,related accept
            }}
            chain through {{ type filter hook forward priority 0; policy drop;
                ct state established,related accept
                ct status dnat accept
                iifname lan {let_out}
            }}
        }}"
    )
}

/// Gives each new flow the next port, regardless of its source port.
fn counting(outside: Ipv4Addr) -> String {
    let mut ports = String::new();
    for n in 0..COUNTED {
        let comma = if n == 0 { "" } else { ", " };
        let _ = write!(ports, "{comma}{n} : {}", COUNT_FROM + n);
    }
    format!(
        "oifname wan meta l4proto udp snat to {outside}:numgen inc mod {COUNTED} map {{ {ports} }}
         oifname wan masquerade"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_a_name_of_its_own() {
        let mut names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROFILES.len());
    }
}
