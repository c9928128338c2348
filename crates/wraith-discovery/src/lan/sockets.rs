//! UDP sockets for both families. One that cannot be had is done without: a machine may have no IPv6, or no IPv4.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket, Type};

use super::interfaces::Interface;
use super::{GROUP_V4, GROUP_V6, PORT};

/// More than a packet: a longer datagram must not look like one.
const BUFFER_LEN: usize = 2048;

/// A socket for each family.
#[derive(Debug)]
pub struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Sockets {
    /// On ports of their own: to ask, to answer, and to be answered.
    pub fn own() -> io::Result<Self> {
        Self::bind(0)
    }

    /// On the port of the group, shared with whoever else on this machine listens there. Nothing is joined yet.
    pub fn shared() -> io::Result<Self> {
        Self::bind(PORT)
    }

    fn bind(port: u16) -> io::Result<Self> {
        let v4 = bind((Ipv4Addr::UNSPECIFIED, port).into());
        let v6 = bind((Ipv6Addr::UNSPECIFIED, port).into());
        match (v4, v6) {
            (Err(error), Err(_)) => Err(error),
            (v4, v6) => Ok(Self { v4: v4.ok(), v6: v6.ok() }),
        }
    }

    /// Listens to the group on these interfaces; how many it is heard on. Again for one that was joined before does nothing.
    pub fn join(&self, interfaces: &[Interface]) -> usize {
        interfaces.iter().filter(|interface| self.join_one(interface)).count()
    }

    fn join_one(&self, interface: &Interface) -> bool {
        let index = InterfaceIndexOrAddress::Index(interface.index);
        let v4 = self.v4.as_ref().filter(|_| interface.ipv4.is_some());
        let v4 = v4.map(|socket| SockRef::from(socket).join_multicast_v4_n(&GROUP_V4, &index));
        let v6 = self.v6.as_ref().filter(|_| interface.ipv6);
        let v6 = v6.map(|socket| socket.join_multicast_v6(&GROUP_V6, interface.index));
        [v4, v6].into_iter().flatten().any(is_joined)
    }

    /// Sends to the group on these interfaces. What cannot be sent is lost like a packet.
    pub fn multicast(&self, interfaces: &[Interface], packet: &[u8]) {
        for interface in interfaces {
            if let (Some(socket), Some(ip)) = (&self.v4, interface.ipv4) {
                let chosen = SockRef::from(socket).set_multicast_if_v4(&ip);
                let _ = chosen.and_then(|()| socket.send_to(packet, (GROUP_V4, PORT)));
            }
            if let (Some(socket), true) = (&self.v6, interface.ipv6) {
                let to = SocketAddrV6::new(GROUP_V6, PORT, 0, interface.index);
                let _ = socket.send_to(packet, to);
            }
        }
    }

    /// From now on what goes to the group stays on this machine.
    pub fn keep_multicast_here(&self) -> io::Result<()> {
        if let Some(socket) = &self.v4 {
            socket.set_multicast_ttl_v4(0)?;
        }
        if let Some(socket) = &self.v6 {
            SockRef::from(socket).set_multicast_hops_v6(0)?;
        }
        Ok(())
    }

    /// Sends to one address.
    pub fn send(&self, to: SocketAddr, packet: &[u8]) {
        let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        if let Some(socket) = socket {
            let _ = socket.send_to(packet, to);
        }
    }

    fn each(&self) -> impl Iterator<Item = &UdpSocket> {
        self.v4.iter().chain(&self.v6)
    }
}

/// Waits for datagrams on any of the sockets and hands them out, a bounded number at a time.
pub fn receive(sockets: &[&Sockets], patience: Duration, mut take: impl FnMut(SocketAddr, &[u8])) {
    const AT_A_TIME: usize = 32;
    let all: Vec<&UdpSocket> = sockets.iter().flat_map(|s| s.each()).collect();
    let mut fds: Vec<_> = all.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(patience).unwrap_or_default();
    if !matches!(poll(&mut fds, Some(&timeout)), Ok(1..)) {
        return;
    }
    let mut buffer = [0; BUFFER_LEN];
    for socket in all {
        for _ in 0..AT_A_TIME {
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => take(from, &buffer[..len]),
                // None is left, or an earlier datagram was refused by its receiver, which is told only once.
                Err(_) => break,
            }
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if address.port() != 0 {
        // Several senders on one machine all hear the group.
        socket.set_reuse_address(true)?;
        // Only what this socket joined, not what any other program here did.
        #[cfg(target_os = "linux")]
        if address.is_ipv4() {
            socket.set_multicast_all_v4(false)?;
        } else {
            socket.set_multicast_all_v6(false)?;
        }
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Now or before.
fn is_joined(result: io::Result<()>) -> bool {
    result.map_or_else(|error| error.kind() == io::ErrorKind::AddrInUse, |()| true)
}
