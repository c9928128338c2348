//! The bounded queue through which other threads hand datagrams to the UDP thread.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

use crate::lock::lock;

/// Most bytes queued by other threads. More are dropped, as the network would drop them.
const QUEUE_BYTES: usize = 4 << 20;

/// State shared by the UDP thread and other threads.
#[derive(Debug)]
pub struct UdpQueue {
    queue: Mutex<PendingDatagrams>,
    pub event: OwnedFd,
    /// Whether the thread has been signalled.
    pub signalled: AtomicBool,
    pub stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct PendingDatagrams {
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    bytes: usize,
}

impl UdpQueue {
    /// Creates an empty queue.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            event: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            signalled: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// Queues `datagram` for `to`. Returns false if it is dropped.
    pub fn send(&self, to: SocketAddr, datagram: Vec<u8>) -> bool {
        let mut queue = lock(&self.queue);
        if queue.bytes + datagram.len() > QUEUE_BYTES {
            return false;
        }
        queue.bytes += datagram.len();
        queue.datagrams.push((to, datagram));
        drop(queue);
        self.signal();
        true
    }

    /// Stops the thread.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.signal();
    }

    fn signal(&self) {
        if !self.signalled.swap(true, Ordering::SeqCst) {
            // The only possible error is a full counter; the descriptor is then readable anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Takes all queued datagrams.
    pub fn take(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        // The order matters: a signal in between causes a spurious wake-up instead of a lost one.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        self.signalled.store(false, Ordering::SeqCst);
        let mut queue = lock(&self.queue);
        queue.bytes = 0;
        std::mem::take(&mut queue.datagrams)
    }
}
