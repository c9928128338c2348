//! The relay's second UDP port, at which it does nothing but say where it sees who asks (SPEC §14.2): what two ports see and what gets
//! back from the one that was not asked tells a client what kind of NAT it is behind.
//!
//! Invariant: what leaves here is an answer to a question under the relay's secret, and goes where that came from.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::sleep;
use wraith_transport::mover::{RecvSlots, Udp};

use super::shared::{Shared, lock};

/// Pause after the socket failed.
const PAUSE: Duration = Duration::from_millis(10);

/// See the module. Its lock is held during system calls, which do not block.
#[derive(Debug)]
pub struct OtherPort {
    udp: Mutex<Udp>,
    number: u16,
}

impl OtherPort {
    pub fn new(udp: Udp) -> Self {
        let number = udp.local_addr().port();
        Self { udp: Mutex::new(udp), number }
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// Answers `to`, who asked `asked`, from here, at the address of this machine that was asked.
    pub fn answer(&self, asked: &Udp, to: SocketAddr, answer: &[u8]) {
        // Who waits here holds up everybody's datagrams; a lost answer is asked for again.
        let Ok(mut udp) = self.udp.try_lock() else { return };
        udp.take_source(to, asked);
        udp.send(to, None, answer, answer.len());
    }

    /// Answers what is asked here, for ever.
    async fn serve(&self, shared: &Shared) -> io::Result<()> {
        // The same socket, to wait for it.
        let socket = lock(&self.udp).as_fd().try_clone_to_owned()?;
        let socket = UdpSocket::from_std(socket.into())?;
        let mut slots = RecvSlots::new();
        loop {
            socket.readable().await?;
            match socket.try_io(Interest::READABLE, || self.receive(shared, &mut slots)) {
                // Others get their turn, however many come.
                Ok(()) => tokio::task::yield_now().await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Answers what is there.
    fn receive(&self, shared: &Shared, slots: &mut RecvSlots) -> io::Result<()> {
        let filled = lock(&self.udp).receive(slots)?;
        if filled == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        for slot in 0..filled {
            let Some(received) = slots.received(slot) else { continue };
            let Some(from) = received.from.ip() else { continue };
            let datagrams = &slots.buffer(slot)[..received.len];
            for datagram in datagrams.chunks(received.stride.max(1)) {
                match shared.reflector.answer(from, datagram) {
                    Some(answer) if answer.after.is_zero() && !answer.from_other_port => {
                        let len = answer.packet.len();
                        lock(&self.udp).send(from, None, &answer.packet, len);
                    }
                    Some(_) => {}
                    None => shared.metrics.unauthentic.add(1),
                }
            }
        }
        Ok(())
    }
}

/// Serves the other port, if there is one, until it fails for good.
pub async fn serve(shared: Arc<Shared>) {
    if let Some(port) = &shared.other_port
        && let Err(error) = port.serve(&shared).await
    {
        tracing::debug!(%error, "the other port is not served any more");
    }
}
