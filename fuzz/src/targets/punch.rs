//! Hole punching between two endpoints, with an on-path attacker that drops, repeats, misdirects,
//! forges and delays packets.
//!
//! Invariant: only few packets go to an unproven address, no answer is longer than its question,
//! and every attempt ends.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_core::punch::{PeerStart, PortGuessing};
use wraith_core::{Endpoint, EndpointConfig, PathAddr, PunchEvent, Role, Time};
use wraith_noise::SecretIdentity;

use crate::input::Input;

const SECRET: [u8; 32] = [9; 32];
const STEPS_MAX: u32 = 400;
/// Packets to one address from both kinds of attempt together, for two sides: twelve, and one of
/// many ports.
const PER_ADDRESS: u32 = 2 * (12 + 1);
/// Time after which the count of sent packets starts anew.
const PERIOD: Duration = Duration::from_secs(120);
const START: Time = Time::from_nanos(1_000_000_000);

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n % 5], 4000 + u16::from(n % 7)))
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let side = |seed: u8| {
        let identity = SecretIdentity::from_seed([seed; 32]);
        Endpoint::new(EndpointConfig::new(identity), [seed; 32])
    };
    let (mut now, mut sides) = (START, [side(1), side(2)]);
    let candidates: Vec<_> = input.bytes(8).iter().map(|n| address(*n)).collect();
    for (side, role) in sides.iter_mut().zip([Role::Initiator, Role::Responder]) {
        let punches = side.punches();
        punches.punch(now, &SECRET, role, PeerStart::Now, &candidates).expect("the first");
        if input.byte() & 1 != 0 {
            let ports = PortGuessing::Ports(Ipv4Addr::new(192, 0, 2, 1));
            punches
                .punch_by_port_guessing(now, &SECRET, role, &ports)
                .expect("the first with many ports");
        }
    }
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let (mut sent, mut proved) = (HashMap::new(), HashSet::new());
    for _ in 0..STEPS_MAX {
        for side in &mut sides {
            collect(side, now, &mut packets, &mut sent);
        }
        if input.is_empty() {
            break;
        }
        let kind = input.byte();
        let side = &mut sides[usize::from(kind & 1)];
        if kind & 2 != 0 {
            now += Duration::from_millis(u64::from(input.byte()) * 4);
            side.handle_timeout(now);
        }
        let mut datagram = match packets.len() {
            0 => input.bytes(200).to_vec(),
            _ if kind & 4 != 0 => input.bytes(200).to_vec(),
            count => packets[usize::from(input.u16()) % count].clone(),
        };
        if kind & 8 != 0 && !datagram.is_empty() {
            let at = usize::from(input.u16()) % datagram.len();
            datagram[at] ^= input.byte();
        }
        let from = PathAddr::from(address(input.byte()));
        side.handle_datagram(now, from, None, &mut datagram);
        while let Some((_, event)) = side.punches().poll_event() {
            if let PunchEvent::Punched { remote, .. } = event {
                proved.insert(remote);
            }
        }
    }
    sent.retain(|to, _| !proved.contains(to));
    assert!(sent.values().all(|count| *count <= PER_ADDRESS) || now - START > PERIOD, "{sent:?}");
    for side in &mut sides {
        now += Duration::from_secs(60);
        side.handle_timeout(now);
        side.handle_timeout(now + Duration::from_secs(60));
        assert_eq!(side.poll_timeout(), None, "every attempt ends");
    }
}

fn collect(
    side: &mut Endpoint,
    now: Time,
    packets: &mut Vec<Vec<u8>>,
    sent: &mut HashMap<SocketAddr, u32>,
) {
    let mut buf = vec![0; 1 << 16];
    while let Some(transmit) = side.poll_transmit(now, &mut buf) {
        assert!(transmit.len <= 160);
        let to = transmit.to.ip().expect("only IP addresses are known");
        assert!(to.ip() != IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        *sent.entry(to).or_default() += 1;
        packets.push(buf[..transmit.len].to_vec());
    }
}
