//! A link between a receiver and a sender.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use wraith::Ticket;

use super::LOOPBACK;

/// A link between a receiver and a sender that can be cut.
pub struct Wire {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Wire {
    pub async fn to(sender: SocketAddr) -> Self {
        let (near, far) =
            (UdpSocket::bind(LOOPBACK).await.unwrap(), UdpSocket::bind(LOOPBACK).await.unwrap());
        far.connect(sender).await.unwrap();
        let address = near.local_addr().unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        let cut = Arc::clone(&is_cut);
        tasks.spawn(async move {
            let mut receiver = None;
            let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                // Packets that cannot be sent are lost, as on any link.
                tokio::select! {
                    Ok((len, from)) = near.recv_from(&mut up) => {
                        receiver = Some(from);
                        if !cut.load(Relaxed) {
                            let _ = far.send(&up[..len]).await;
                        }
                    }
                    Ok(len) = far.recv(&mut down) => {
                        if let (Some(to), false) = (receiver, cut.load(Relaxed)) {
                            let _ = near.send_to(&down[..len], to).await;
                        }
                    }
                }
            }
        });
        Self { address, is_cut, _tasks: tasks }
    }

    /// Returns the ticket with the address of this link.
    pub fn ticket(&self, ticket: &Ticket) -> Ticket {
        Ticket::new(ticket.node_id(), ticket.capability().clone(), vec![self.address])
    }

    pub fn cut(&self) {
        self.is_cut.store(true, Relaxed);
    }

    pub fn mend(&self) {
        self.is_cut.store(false, Relaxed);
    }
}
