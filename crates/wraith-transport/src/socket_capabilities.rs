//! Capabilities of a UDP socket on this machine, measured: a batch is sent through loopback with
//! the same calls as in a transfer. Used only for diagnostics of slow transfers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

use crate::mover::{KERNEL_BUFFER, RecvSlots, SendResult, Udp};

/// Datagrams of the batch, and their size: in total less than the smallest receive buffer of any
/// kernel.
const DATAGRAMS: usize = 32;
const DATAGRAM_BYTES: usize = 1200;
/// Time limit of the measurement. Loopback takes microseconds, but a busy machine takes much
/// longer.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Measured capabilities of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketCapabilities {
    /// Datagrams sent and received of the batch.
    pub sent: usize,
    pub received: usize,
    /// Whether the kernel segmented the batch (GSO), so that one system call sent all of it.
    pub segmentation: bool,
    /// Whether the kernel merged received datagrams (GRO): a receive buffer held several.
    pub merging: bool,
    /// Kernel buffer in each direction, in usable bytes.
    pub receive_buffer: usize,
    pub send_buffer: usize,
    /// Kernel buffer that every socket requests in each direction.
    pub buffer_wanted: usize,
}

impl SocketCapabilities {
    /// Measures on loopback, over IPv6 or IPv4.
    ///
    /// # Errors
    /// No such socket can be opened, or the operating system refuses to send.
    pub fn measure(ipv6: bool) -> io::Result<Self> {
        let loopback: IpAddr =
            if ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let address = SocketAddr::new(loopback, 0);
        let (mut from, mut to) = (Udp::bind(address)?, Udp::bind(address)?);
        let batch = vec![0; DATAGRAMS * DATAGRAM_BYTES];
        if let SendResult::Unreachable(error) =
            from.send(to.local_addr(), None, &batch, DATAGRAM_BYTES)
        {
            return Err(error);
        }
        let (received, merging) = receive_batch(&mut to)?;
        let io = SockRef::from(&to);
        Ok(Self {
            sent: DATAGRAMS,
            received,
            segmentation: from.segments(),
            merging,
            receive_buffer: usable(io.recv_buffer_size()?),
            send_buffer: usable(io.send_buffer_size()?),
            buffer_wanted: KERNEL_BUFFER,
        })
    }
}

/// Returns the usable bytes. Linux doubles a requested size for its bookkeeping, and reports the
/// doubled value.
fn usable(reported: usize) -> usize {
    if cfg!(target_os = "linux") { reported / 2 } else { reported }
}

fn receive_batch(socket: &mut Udp) -> io::Result<(usize, bool)> {
    let mut buffers = RecvSlots::new();
    let (mut received, mut merging) = (0, false);
    let deadline = Instant::now() + ARRIVAL_TIMEOUT;
    while received < DATAGRAMS {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        if poll(&mut [PollFd::new(&*socket, PollFlags::IN)], Some(&timeout))? == 0 {
            break;
        }
        let filled = socket.receive(&mut buffers)?;
        for (_, _, datagrams) in buffers.filled(filled) {
            let merged = datagrams.count();
            received += merged;
            merging |= merged > 1;
        }
    }
    Ok((received, merging))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_passes_loopback_without_loss() {
        let facts = SocketCapabilities::measure(false).unwrap();
        assert_eq!(facts.received, facts.sent);
        assert!(facts.receive_buffer > 0 && facts.send_buffer > 0);
    }
}
