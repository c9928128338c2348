//! A UDP socket that moves whole batches: segmentation offload (GSO) for sending, receive offload
//! (GRO) and `recvmmsg` for receiving.
//!
//! The addresses in the API of this module are canonical: an IPv4 peer of a dual-stack socket has
//! an IPv4 address. Datagrams are never fragmented (DF is set). So the kernel refuses a datagram
//! above the interface MTU; most path MTU probes end that way. Such a refusal is treated as packet
//! loss, not as an error. An error for one destination never affects another.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Type};
use tracing::debug;
use wraith_core::Ecn;

use super::SendResult;
use super::slots::{RECV_BUFFER_BYTES, Received, RecvSlots, SLOTS};
use super::source::SourceAddresses;

/// Kernel buffer requested in each direction: at 10 Gbit/s it covers 3 ms without the I/O thread.
/// The kernel grants up to `net.core.{r,w}mem_max`.
pub(crate) const KERNEL_BUFFER: usize = 4 << 20;
/// Maximum number of datagrams in one segmented send (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;
/// Maximum bytes of one segmented send: an IPv4 packet of 65,535 bytes minus 20 + 8 bytes of
/// headers.
pub(crate) const SEND_MAX: usize = 65_507;
/// A bound, non-blocking socket. Relay clients and servers, which move their own datagrams over
/// UDP, use it, too.
#[derive(Debug)]
pub struct Udp {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    /// False once the kernel or the device has refused a segmented send.
    segmentation: bool,
    sources: SourceAddresses,
    /// Metadata of each buffer from the last receive.
    metas: [RecvMeta; SLOTS],
}

impl Udp {
    /// Binds to `address`. Falls back to IPv4 if an IPv6 wildcard is requested and the machine has
    /// no IPv6.
    ///
    /// # Errors
    /// The address is not available.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        match Self::bind_exactly(address) {
            Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && no_ipv6(&error) => {
                Self::bind_exactly((Ipv4Addr::UNSPECIFIED, address.port()).into())
            }
            result => result,
        }
    }

    fn bind_exactly(address: SocketAddr) -> io::Result<Self> {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
        }
        set_buffers(SockRef::from(&socket), KERNEL_BUFFER);
        socket.bind(&address.into())?;
        let io = UdpSocket::from(socket);
        let state = UdpSocketState::new((&io).into())?;
        // quinn-udp enables receive timestamps, which are unused. From 0.6.2 on they take so much
        // room for control messages that the ECN codepoint of merged datagrams is truncated. A
        // kernel without timestamps refuses this option, and sends no timestamps.
        let _ = setsockopt(&io, sockopt::ReceiveTimestampns, &false);
        let local = io.local_addr()?;
        let segmentation = state.max_gso_segments() > 1;
        let sources = SourceAddresses::new(local.ip());
        Ok(Self { io, state, local, segmentation, sources, metas: [RecvMeta::default(); SLOTS] })
    }

    /// Requests kernel buffers of this size in each direction.
    pub(crate) fn set_buffers(&self, bytes: usize) {
        set_buffers(SockRef::from(&self.io), bytes);
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether batches go out in one call, as far as is known yet.
    pub(crate) fn segments(&self) -> bool {
        self.segmentation
    }

    /// Receives the available datagrams. Returns the number of filled slots, zero if nothing is
    /// available.
    ///
    /// # Errors
    /// The socket failed; a retry may succeed.
    pub fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        let mut rest = slots.bytes.chunks_exact_mut(RECV_BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().expect("one per slot")));
        let filled = match self.state.recv((&self.io).into(), &mut slices, &mut self.metas) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for (slot, meta) in slots.received.iter_mut().zip(&self.metas[..filled]) {
            let from = canonical(meta.addr);
            self.sources.record(from, meta.dst_ip);
            let ecn = meta.ecn.map(from_codepoint);
            *slot = Some(Received { from: from.into(), ecn, len: meta.len, stride: meta.stride });
        }
        Ok(filled)
    }

    /// Makes datagrams to `peer` leave from the local address at which `other` received from it.
    /// `other` is a socket bound to the same addresses.
    pub fn take_source(&mut self, peer: SocketAddr, other: &Self) {
        self.sources.record(peer, other.sources.of(peer));
    }

    /// Sends `datagrams`, split every `segment` bytes, to `to`.
    pub fn send(
        &mut self,
        to: SocketAddr,
        ecn: Option<Ecn>,
        datagrams: &[u8],
        segment: usize,
    ) -> SendResult {
        let Some(destination) = self.destination(to) else {
            return SendResult::Unreachable(Errno::AFNOSUPPORT.into());
        };
        let mut src_ip = self.sources.of(to);
        // Set after a refused segmented send: the result of the first single datagram shows the
        // cause.
        let mut singly = !self.segmentation;
        let mut done = 0;
        while done < datagrams.len() {
            let rest = &datagrams[done..];
            let contents = &rest[..batch_len(segment, singly).min(rest.len())];
            let transmit = Transmit {
                destination,
                ecn: ecn.map(to_codepoint),
                contents,
                segment_size: (contents.len() > segment).then_some(segment),
                src_ip,
            };
            match self.state.try_send((&self.io).into(), &transmit) {
                Ok(()) => {
                    if singly && self.segmentation {
                        debug!(local = %self.local, "GSO refused; sending one datagram per call");
                    }
                    self.segmentation &= !singly;
                    done += contents.len();
                }
                Err(error) => match classify(error, contents.len() > segment) {
                    Refusal::Blocked => return SendResult::Blocked(done),
                    Refusal::Segmentation => singly = true,
                    Refusal::Lost => done += contents.len(),
                    Refusal::Unreachable(_) if src_ip.is_some() => {
                        // The local address may have been removed.
                        self.sources.remove(to);
                        src_ip = None;
                    }
                    Refusal::Unreachable(error) => return SendResult::Unreachable(error),
                },
            }
        }
        SendResult::All
    }

    /// Converts `to` into the socket's address family.
    fn destination(&self, to: SocketAddr) -> Option<SocketAddr> {
        match (self.local, to) {
            (SocketAddr::V6(local), SocketAddr::V4(to)) => local
                .ip()
                .is_unspecified()
                .then(|| SocketAddrV6::new(to.ip().to_ipv6_mapped(), to.port(), 0, 0).into()),
            (SocketAddr::V4(_), SocketAddr::V6(_)) => None,
            _ => Some(to),
        }
    }
}

/// Requests kernel buffers. A smaller grant reduces speed, not correctness.
fn set_buffers(socket: SockRef<'_>, bytes: usize) {
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
}

/// Returns the bytes of one system call.
fn batch_len(segment: usize, singly: bool) -> usize {
    if singly { segment } else { segment * (SEND_MAX / segment).clamp(1, SEGMENTS_MAX) }
}

fn classify(error: io::Error, segmented: bool) -> Refusal {
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN) => Refusal::Blocked,
        // For a device without checksum offload, the error is EIO; otherwise it is EINVAL. The
        // kernel also returns EINVAL for segments above the MTU; sent singly, such segments fail
        // with EMSGSIZE.
        Some(Errno::IO | Errno::INVAL) if segmented => Refusal::Segmentation,
        // The datagram exceeds the interface MTU: a probe, or a path that shrank. Loss recovery
        // handles both.
        Some(Errno::MSGSIZE) => Refusal::Lost,
        // The device queue is full, or an earlier datagram was refused by its receiver.
        Some(Errno::NOBUFS | Errno::NOMEM | Errno::CONNREFUSED) => Refusal::Lost,
        _ => Refusal::Unreachable(error),
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Why the kernel did not take a batch.
enum Refusal {
    Blocked,
    Segmentation,
    Lost,
    Unreachable(io::Error),
}

/// Returns the canonical form: IPv4 as IPv4, and IPv6 without fields that do not identify the peer.
/// So equal peers compare equal.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_canonical() {
            IpAddr::V4(ip) => (ip, v6.port()).into(),
            IpAddr::V6(ip) => {
                let scope = if ip.is_unicast_link_local() { v6.scope_id() } else { 0 };
                SocketAddrV6::new(ip, v6.port(), 0, scope).into()
            }
        },
    }
}

fn no_ipv6(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

fn to_codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

fn from_codepoint(ecn: EcnCodepoint) -> Ecn {
    match ecn {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use wraith_core::PathAddr;

    /// Receives until `count` datagrams have arrived.
    fn receive(socket: &mut Udp, count: usize) -> Vec<(PathAddr, Option<Ecn>, Vec<u8>)> {
        let mut buffers = RecvSlots::new();
        let mut got = Vec::new();
        while got.len() < count {
            poll(&mut [PollFd::new(&*socket, PollFlags::IN)], None).unwrap();
            let filled = socket.receive(&mut buffers).unwrap();
            for (from, ecn, datagrams) in buffers.filled(filled) {
                got.extend(datagrams.map(|datagram| (from, ecn, datagram.to_vec())));
            }
        }
        got
    }

    fn pair(a: impl Into<SocketAddr>, b: impl Into<SocketAddr>) -> (Udp, Udp) {
        (Udp::bind(a.into()).unwrap(), Udp::bind(b.into()).unwrap())
    }

    fn datagrams(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 1000) as u8).collect()
    }

    #[test]
    fn a_batch_arrives_segmented_and_with_its_ecn() {
        let (mut a, mut b) = pair((Ipv4Addr::LOCALHOST, 0), (Ipv4Addr::LOCALHOST, 0));
        let bytes = datagrams(10_500);
        assert!(matches!(a.send(b.local_addr(), Some(Ecn::Ect0), &bytes, 1000), SendResult::All));
        let got = receive(&mut b, 11);
        assert!(
            got.iter()
                .all(|(from, ecn, _)| *from == a.local_addr().into() && *ecn == Some(Ecn::Ect0))
        );
        let sizes: Vec<_> = got.iter().map(|(_, _, datagram)| datagram.len()).collect();
        assert_eq!(sizes, [&[1000; 10][..], &[500]].concat());
        assert_eq!(
            got.into_iter().flat_map(|(_, _, datagram)| datagram).collect::<Vec<_>>(),
            bytes
        );
    }

    /// In quinn-udp the control messages of a merged datagram compete for room, and ECN is the
    /// last. With receive timestamps, which it enables from 0.6.2 on, ECN would be truncated.
    #[test]
    fn merged_datagrams_keep_their_ecn_codepoint_over_ipv4_and_ipv6() {
        let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        for address in addresses {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let (mut a, mut b) = pair((address, 0), (address, 0));
                assert!(matches!(
                    a.send(b.local_addr(), Some(ecn), &datagrams(30_000), 1000),
                    SendResult::All
                ));
                let (mut slots, mut got, mut merged) = (RecvSlots::new(), 0, false);
                while got < 30 {
                    poll(&mut [PollFd::new(&b, PollFlags::IN)], None).unwrap();
                    let filled = b.receive(&mut slots).unwrap();
                    for (_, seen, datagrams) in slots.filled(filled) {
                        let here = datagrams.count();
                        assert_eq!(seen, Some(ecn), "{here} datagrams from {address}");
                        (got, merged) = (got + here, merged || here > 1);
                    }
                }
                assert!(merged || !a.segments(), "a batch that is sent whole arrives merged");
            }
        }
    }

    #[test]
    fn more_than_64_small_segments_are_sent_in_several_calls() {
        let (mut a, mut b) = pair((Ipv4Addr::LOCALHOST, 0), (Ipv4Addr::LOCALHOST, 0));
        assert!(matches!(a.send(b.local_addr(), None, &datagrams(20_000), 100), SendResult::All));
        assert_eq!(receive(&mut b, 200).len(), 200);
    }

    #[test]
    fn without_segmentation_the_same_batch_arrives() {
        let (mut a, mut b) = pair((Ipv4Addr::LOCALHOST, 0), (Ipv4Addr::LOCALHOST, 0));
        a.segmentation = false;
        let bytes = datagrams(5_500);
        assert!(matches!(a.send(b.local_addr(), None, &bytes, 1000), SendResult::All));
        let got = receive(&mut b, 6);
        assert_eq!(
            got.into_iter().flat_map(|(_, _, datagram)| datagram).collect::<Vec<_>>(),
            bytes
        );
    }

    #[test]
    fn an_ipv4_peer_of_a_dual_stack_socket_is_an_ipv4_address() {
        let (mut dual, mut v4) = pair((Ipv6Addr::UNSPECIFIED, 0), (Ipv4Addr::LOCALHOST, 0));
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, dual.local_addr().port()).into();
        assert!(matches!(v4.send(address, None, b"to", 2), SendResult::All));
        let got = receive(&mut dual, 1);
        assert_eq!(got[0].0, v4.local_addr().into());
        assert!(matches!(dual.send(v4.local_addr(), None, b"fro", 3), SendResult::All));
        assert_eq!(receive(&mut v4, 1)[0].0, address.into());
    }

    #[test]
    fn an_answer_leaves_from_the_destination_of_the_request() {
        let (mut dual, mut v4) = pair((Ipv6Addr::UNSPECIFIED, 0), (Ipv4Addr::LOCALHOST, 0));
        let asked: SocketAddr = (Ipv4Addr::new(127, 0, 0, 77), dual.local_addr().port()).into();
        assert!(matches!(v4.send(asked, None, b"?", 1), SendResult::All));
        let from = receive(&mut dual, 1)[0].0.ip().unwrap();
        assert!(matches!(dual.send(from, None, b"!", 1), SendResult::All));
        assert_eq!(receive(&mut v4, 1)[0].0, asked.into());
    }

    #[test]
    fn ipv6_loopback_works() {
        let (mut a, mut b) = pair((Ipv6Addr::LOCALHOST, 0), (Ipv6Addr::LOCALHOST, 0));
        assert!(matches!(a.send(b.local_addr(), None, &datagrams(3_000), 1000), SendResult::All));
        assert_eq!(receive(&mut b, 3)[0].0, a.local_addr().into());
    }

    #[test]
    fn an_address_of_the_wrong_family_is_unreachable_and_nothing_else_breaks() {
        let (mut a, mut b) = pair((Ipv4Addr::LOCALHOST, 0), (Ipv4Addr::LOCALHOST, 0));
        let v6 = (Ipv6Addr::LOCALHOST, 9).into();
        assert!(matches!(a.send(v6, None, b"x", 1), SendResult::Unreachable(_)));
        assert!(matches!(a.send(b.local_addr(), None, b"x", 1), SendResult::All));
        receive(&mut b, 1);
    }

    #[test]
    fn an_empty_datagram_yields_nothing() {
        let (a, mut b) = pair((Ipv4Addr::LOCALHOST, 0), (Ipv4Addr::LOCALHOST, 0));
        a.io.send_to(&[], b.local_addr()).unwrap();
        a.io.send_to(b"after", b.local_addr()).unwrap();
        assert_eq!(receive(&mut b, 1)[0].2, b"after");
    }
}
