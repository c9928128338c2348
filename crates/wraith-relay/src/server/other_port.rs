//! The relay's second UDP port, which only reports observed addresses (SPEC §14.2). A client
//! compares the addresses that both ports report, and tests which answers arrive. The results
//! reveal the type of its NAT.
//!
//! Invariant: this port sends only answers to requests under the relay's secret, to their source
//! address.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::sleep;
use wraith_transport::mover::{RecvSlots, Udp};

use super::metrics::Metrics;
use super::reflector::Reflector;
use crate::lock::lock;

/// Pause after a socket error.
const PAUSE: Duration = Duration::from_millis(10);

/// The second port. Its lock is held during system calls, which do not block.
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

    /// Sends `answer` to `to` from this port, with the local address at which the `asked` socket
    /// received the request.
    pub fn answer(&self, asked: &Udp, to: SocketAddr, answer: &[u8]) {
        // Waiting for the lock would delay all datagrams of the relay; a client repeats a lost
        // request.
        let Ok(mut udp) = self.udp.try_lock() else { return };
        udp.take_source(to, asked);
        udp.send(to, None, answer, answer.len());
    }

    /// Answers requests at this port forever.
    pub async fn answer_requests(
        &self,
        reflector: &Reflector,
        metrics: &Metrics,
    ) -> io::Result<()> {
        // The same socket, registered for readiness.
        let socket = lock(&self.udp).as_fd().try_clone_to_owned()?;
        let socket = UdpSocket::from_std(socket.into())?;
        let mut slots = RecvSlots::new();
        loop {
            socket.readable().await?;
            match socket.try_io(Interest::READABLE, || self.receive(reflector, metrics, &mut slots))
            {
                // Other tasks get their turn, however many requests arrive.
                Ok(()) => tokio::task::yield_now().await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Answers the available requests.
    fn receive(
        &self,
        reflector: &Reflector,
        metrics: &Metrics,
        slots: &mut RecvSlots,
    ) -> io::Result<()> {
        let filled = lock(&self.udp).receive(slots)?;
        if filled == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        for slot in 0..filled {
            let Some(received) = slots.received(slot) else { continue };
            let Some(from) = received.from.ip() else { continue };
            let datagrams = &slots.buffer(slot)[..received.len];
            for datagram in datagrams.chunks(received.stride.max(1)) {
                match reflector.answer(from, datagram) {
                    Some(answer) if answer.after.is_zero() && !answer.from_other_port => {
                        let len = answer.packet.len();
                        lock(&self.udp).send(from, None, &answer.packet, len);
                    }
                    Some(_) => {}
                    None => metrics.unauthentic.add(1),
                }
            }
        }
        Ok(())
    }
}
