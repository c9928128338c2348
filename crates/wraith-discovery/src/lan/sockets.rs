//! UDP sockets for both address families. A machine without IPv4 or IPv6 has only one of them.

use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrLike, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::interfaces::Interface;
use super::{GROUP_V4, GROUP_V6, PORT};

/// Larger than a packet, so that a truncated longer datagram is not mistaken for one.
const BUFFER_LEN: usize = 2048;

/// A receive buffer with the index of the next socket to read. Round robin prevents starvation by a
/// flood on one socket.
#[derive(Debug)]
pub struct RecvBuffer {
    bytes: Box<[u8; BUFFER_LEN]>,
    /// For the packet info of either address family.
    control: Vec<u8>,
    turn: usize,
}

impl RecvBuffer {
    pub fn new() -> Self {
        let control = nix::cmsg_space!(libc::in6_pktinfo);
        Self { bytes: Box::new([0; BUFFER_LEN]), control, turn: 0 }
    }

    pub fn bytes(&self) -> &[u8] {
        &*self.bytes
    }
}

/// One socket per address family.
#[derive(Debug)]
pub struct DualStackSockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

/// A received datagram; its bytes are in the [`RecvBuffer`].
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    pub len: usize,
    pub from: SocketAddr,
    /// Destination address. Only sockets on the group's port report it.
    to: Option<IpAddr>,
}

impl Datagram {
    /// Reports whether the datagram was sent to the group. No router forwards such a datagram, so
    /// its sender is on this network.
    pub fn is_for_group(&self) -> bool {
        self.to.is_some_and(|to| to == GROUP_V4 || to == GROUP_V6)
    }
}

type RecvResult = io::Result<Datagram>;

impl DualStackSockets {
    /// Opens sockets on ephemeral ports, for requests and responses.
    pub fn ephemeral() -> io::Result<Self> {
        Self::bind(0)
    }

    /// Opens sockets on the group's port, shared with other processes. No group is joined yet.
    pub fn on_group_port() -> io::Result<Self> {
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

    /// Joins the group on these interfaces and returns the number of successes. Joining again has
    /// no effect.
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

    /// Sends to the group on these interfaces. Send errors are treated as packet loss.
    pub fn multicast(&self, interfaces: &[Interface], packet: &[u8]) {
        for interface in interfaces {
            if let (Some(socket), Some(ip)) = (&self.v4, interface.ipv4) {
                let socket = SockRef::from(socket);
                let to = SocketAddr::from((GROUP_V4, PORT)).into();
                let chosen = socket.set_multicast_if_v4(&ip);
                let _ = chosen.and_then(|()| socket.send_to(packet, &to));
            }
            if let (Some(socket), true) = (&self.v6, interface.ipv6) {
                let to = SocketAddrV6::new(GROUP_V6, PORT, 0, interface.index);
                let _ = SockRef::from(socket).send_to(packet, &to.into());
            }
        }
    }

    /// Keeps multicast away from sockets of this machine from now on.
    pub fn skip_own_host(&self) -> io::Result<()> {
        if let Some(socket) = &self.v4 {
            socket.set_multicast_loop_v4(false)?;
        }
        if let Some(socket) = &self.v6 {
            socket.set_multicast_loop_v6(false)?;
        }
        Ok(())
    }

    /// Restricts multicast to this machine from now on.
    pub fn confine_multicast_to_host(&self) -> io::Result<()> {
        if let Some(socket) = &self.v4 {
            socket.set_multicast_ttl_v4(0)?;
        }
        if let Some(socket) = &self.v6 {
            SockRef::from(socket).set_multicast_hops_v6(0)?;
        }
        Ok(())
    }

    /// Sends to one address. Send errors are treated as packet loss.
    pub fn send(&self, to: SocketAddr, packet: &[u8]) {
        let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        if let Some(socket) = socket {
            let _ = SockRef::from(socket).send_to(packet, &to.into());
        }
    }

    /// Returns the next datagram of either family. Cancel-safe.
    pub async fn receive(&self, buffer: &mut RecvBuffer) -> RecvResult {
        poll_fn(|cx| poll_receive([&self.v4, &self.v6], cx, buffer)).await
    }

    /// Returns the next datagram at either pair of sockets. Cancel-safe.
    pub async fn receive_from_any(&self, other: &Self, buffer: &mut RecvBuffer) -> RecvResult {
        poll_fn(|cx| poll_receive([&self.v4, &self.v6, &other.v4, &other.v6], cx, buffer)).await
    }
}

fn poll_receive<const N: usize>(
    sockets: [&Option<UdpSocket>; N],
    cx: &mut Context<'_>,
    buffer: &mut RecvBuffer,
) -> Poll<RecvResult> {
    for nth in 0..N {
        let turn = (buffer.turn + nth) % N;
        let Some(socket) = sockets[turn] else { continue };
        while let Poll::Ready(ready) = socket.poll_recv_ready(cx) {
            let received = ready
                .and_then(|()| socket.try_io(Interest::READABLE, || receive_from(socket, buffer)));
            // A spurious readiness: the next poll registers the waker.
            if received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                continue;
            }
            buffer.turn = turn + 1;
            return Poll::Ready(received);
        }
    }
    Poll::Pending
}

fn receive_from(socket: &UdpSocket, buffer: &mut RecvBuffer) -> RecvResult {
    let RecvBuffer { bytes, control, .. } = buffer;
    let mut parts = [IoSliceMut::new(&mut **bytes)];
    let flags = MsgFlags::empty();
    let received =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(control), flags)?;
    let to = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
        }
        _ => None,
    });
    let from = received.address.as_ref().and_then(socket_addr);
    Ok(Datagram { len: received.bytes, from: from.ok_or(io::ErrorKind::InvalidData)?, to })
}

fn socket_addr(address: &SockaddrStorage) -> Option<SocketAddr> {
    match address.family()? {
        nix::sys::socket::AddressFamily::Inet => {
            address.as_sockaddr_in().map(|v4| SocketAddrV4::from(*v4).into())
        }
        _ => address.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into()),
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if address.port() != 0 {
        // All listeners on a machine receive the group's packets.
        socket.set_reuse_address(true)?;
        // Receive only groups that this socket joined, not those of other processes.
        #[cfg(target_os = "linux")]
        if address.is_ipv4() {
            socket.set_multicast_all_v4(false)?;
        } else {
            socket.set_multicast_all_v6(false)?;
        }
        // Report the destination, which tells the group from a unicast address.
        match address.is_ipv4() {
            true => setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?,
            false => setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?,
        }
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Reports whether the group is joined, by this call or an earlier one.
fn is_joined(result: io::Result<()>) -> bool {
    result.map_or_else(|error| error.kind() == io::ErrorKind::AddrInUse, |()| true)
}
