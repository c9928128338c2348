//! A non-blocking socket that sends and receives full batches, and waits.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Result, ensure};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wraith_peers::bind;

/// Datagrams in one segmented send (the kernel's `UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;
/// Maximum bytes of one send: an IPv4 packet of 65,535 bytes without its headers.
const SEND_MAX_BYTES: usize = 65_507;
/// Room for any datagram, or any run of them that the kernel merged.
const RECV_BUFFER_BYTES: usize = 64 * 1024;
/// Receive buffers of one system call: together they stay within the L2 cache.
const RECV_BATCH: usize = 8;

/// Number of datagrams of `datagram_bytes` that one call can send.
pub fn segments(datagram_bytes: usize) -> usize {
    (SEND_MAX_BYTES / datagram_bytes).clamp(1, SEGMENTS_MAX)
}

#[derive(Debug)]
pub struct Udp {
    io: UdpSocket,
    state: UdpSocketState,
    buffer: Box<[u8]>,
    metas: [RecvMeta; RECV_BATCH],
}

impl Udp {
    pub fn bind(address: SocketAddr, buffer_bytes: usize) -> Result<Self> {
        let io = bind(address, buffer_bytes)?;
        let state = UdpSocketState::new((&io).into())?;
        let buffer = vec![0; RECV_BATCH * RECV_BUFFER_BYTES].into_boxed_slice();
        Ok(Self { io, state, buffer, metas: [RecvMeta::default(); RECV_BATCH] })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Sends `datagrams`, split every `datagram_bytes`, with one system call.
    pub fn send(&mut self, to: SocketAddr, datagrams: &[u8], datagram_bytes: usize) -> Result<()> {
        let segmented = datagrams.len() > datagram_bytes;
        ensure!(
            !segmented || self.state.max_gso_segments() >= segments(datagram_bytes),
            "the kernel does not send segmented batches, so the raw line cannot be measured",
        );
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: datagrams,
            segment_size: segmented.then_some(datagram_bytes),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.io).into(), &transmit) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for(PollFlags::OUT, None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes every available datagram, up to one batch, to `each`. Returns `false` if there was
    /// none.
    pub fn receive(
        &mut self,
        mut each: impl FnMut(SocketAddr, &mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut rest = self.buffer.chunks_exact_mut(RECV_BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; RECV_BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().expect("one per buffer")));
        let filled = match self.state.recv((&self.io).into(), &mut slices, &mut self.metas) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let buffers = self.buffer.chunks_exact_mut(RECV_BUFFER_BYTES);
        for (meta, buffer) in self.metas[..filled].iter().zip(buffers) {
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                each(meta.addr, datagram)?;
            }
        }
        Ok(true)
    }

    /// Waits until the socket is readable, or the time is over.
    pub fn wait(&self, limit: Option<Duration>) -> Result<()> {
        self.wait_for(PollFlags::IN, limit)
    }

    fn wait_for(&self, what: PollFlags, limit: Option<Duration>) -> Result<()> {
        let limit = limit.map(Timespec::try_from).transpose()?;
        poll(&mut [PollFd::new(&self.io, what)], limit.as_ref())?;
        Ok(())
    }
}
