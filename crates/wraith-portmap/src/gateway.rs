//! The default gateway of this machine, read from the kernel's routing table.
//!
//! The table belongs to the calling thread's network namespace, so a thread gets the gateway of its
//! own network namespace.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Routing table of the calling thread, or that of the process on kernels that do not list one per
/// thread.
const ROUTES: [&str; 2] = ["/proc/thread-self/net/route", "/proc/net/route"];
/// `RTF_UP | RTF_GATEWAY` of linux/route.h.
const UP_GATEWAY: u32 = 0x3;
/// The discard port. A socket connected to it reveals its own address and sends nothing.
const DISCARD: u16 = 9;

/// A router, and this machine's address on the router's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The router.
    pub router: Ipv4Addr,
    /// This machine's address on that network.
    pub local: Ipv4Addr,
}

impl Gateway {
    /// Returns the default gateway with the lowest metric. `None` if there is no default gateway,
    /// or if the system has no such table (every system except Linux).
    #[must_use]
    pub fn of_default_route() -> Option<Self> {
        let table = ROUTES.iter().find_map(|path| fs::read_to_string(path).ok())?;
        Self::at(default_route(&table)?).ok()
    }

    /// Pairs `router` with the source address that this machine would use towards it.
    ///
    /// # Errors
    /// There is no route to the router.
    pub fn at(router: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((router, DISCARD))?;
        match socket.local_addr()? {
            SocketAddr::V4(local) => Ok(Self { router, local: *local.ip() }),
            SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }
}

/// Returns the gateway of the default route with the lowest metric. `table` has the kernel's
/// format: a title line, then `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, with
/// addresses in hexadecimal in memory order.
fn default_route(table: &str) -> Option<Ipv4Addr> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (destination, gateway, flags, mask) = (hex(1)?, hex(2)?, hex(3)?, hex(7)?);
        let metric: u32 = fields.get(6)?.parse().ok()?;
        let default = destination == 0 && mask == 0 && flags & UP_GATEWAY == UP_GATEWAY;
        (default && gateway != 0).then(|| (metric, Ipv4Addr::from(gateway.to_ne_bytes())))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLES: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    fn gateway_of(lines: &str) -> Option<Ipv4Addr> {
        default_route(&format!("{TITLES}{lines}"))
    }

    /// Formats an address as the kernel does, on either byte order.
    fn hex(address: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(address))
    }

    #[test]
    fn the_default_route_with_the_lowest_metric_is_taken() {
        let (a, b, net) = (hex([192, 168, 1, 1]), hex([10, 0, 0, 1]), hex([192, 168, 1, 0]));
        let mask = hex([255, 255, 255, 0]);
        let table = format!(
            "wlan0\t00000000\t{b}\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
             eth0\t00000000\t{a}\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
             eth0\t{net}\t00000000\t0001\t0\t0\t100\t{mask}\t0\t0\t0\n"
        );
        assert_eq!(gateway_of(&table), Some(Ipv4Addr::new(192, 168, 1, 1)));
    }

    #[test]
    fn what_is_no_default_route_by_a_router_that_is_up_is_none() {
        let (router, half) = (hex([10, 0, 0, 1]), hex([128, 0, 0, 0]));
        for line in [
            "",
            &format!("tun0\t00000000\t{router}\t0003\t0\t0\t0\t{half}\t0\t0\t0\n"),
            &format!("eth0\t00000000\t{router}\t0002\t0\t0\t0\t00000000\t0\t0\t0\n"),
            "ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n",
            "ppp0\t00000000\n",
            "a b c d e f g h\n",
        ] {
            assert_eq!(gateway_of(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_address_towards_a_router_on_loopback_is_one_of_loopback() {
        let gateway = Gateway::at(Ipv4Addr::new(127, 0, 5, 1)).unwrap();
        assert_eq!(gateway.local, Ipv4Addr::LOCALHOST);
    }
}
