//! The UDP thread: receives whole batches, consults the table once per batch, and sends whole
//! batches.
//!
//! Other threads hand over datagrams received over TLS through a bounded queue. Such a datagram
//! must leave from the local address that its receiver expects, which this thread's socket
//! remembers.
//!
//! Invariant: the table's lock is not held during a system call.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use wraith_core::punch::ReflectorAnswer;
use wraith_transport::mover::{Received, RecvSlots, Udp};

use super::shared::{Shared, lock};
use super::table::Action;

/// Most bytes queued by other threads. More are dropped, as the network would drop them.
const QUEUE_BYTES: usize = 4 << 20;
/// Pause after a socket error.
const PAUSE: Duration = Duration::from_millis(10);

/// State shared by the UDP thread and other threads.
#[derive(Debug)]
pub struct UdpQueue {
    queue: Mutex<PendingDatagrams>,
    event: OwnedFd,
    /// Whether the thread has been signalled.
    signalled: AtomicBool,
    stopped: AtomicBool,
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

    fn take(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        // The order matters: a signal in between causes a spurious wake-up instead of a lost one.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        self.signalled.store(false, Ordering::SeqCst);
        let mut queue = lock(&self.queue);
        queue.bytes = 0;
        std::mem::take(&mut queue.datagrams)
    }
}

/// Starts the thread.
pub fn start_udp_thread(udp: Udp, shared: Arc<Shared>) -> io::Result<thread::JoinHandle<()>> {
    let thread = UdpThread { udp, shared, slots: RecvSlots::new(), actions: Vec::new() };
    thread::Builder::new().name("relay-udp".into()).spawn(move || thread.run())
}

struct UdpThread {
    udp: Udp,
    shared: Arc<Shared>,
    slots: RecvSlots,
    actions: Vec<(usize, Received, Action)>,
}

impl UdpThread {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut actions = Vec::new();
        // A signal may be pending from before; checking costs one system call.
        let mut queue_signalled = true;
        while !shared.udp_queue.stopped.load(Ordering::SeqCst) {
            if std::mem::take(&mut queue_signalled)
                || shared.udp_queue.signalled.load(Ordering::SeqCst)
            {
                for (to, datagram) in shared.udp_queue.take() {
                    self.udp.send(to, None, &datagram, datagram.len());
                }
            }
            match self.udp.receive(&mut self.slots) {
                Ok(0) => {
                    let mut fds = [
                        PollFd::new(&self.udp, PollFlags::IN),
                        PollFd::from_borrowed_fd(shared.udp_queue.event.as_fd(), PollFlags::IN),
                    ];
                    // The only possible error is an interruption by a signal, which costs one
                    // round.
                    let _ = poll(&mut fds, None);
                    queue_signalled = !fds[1].revents().is_empty();
                }
                Ok(filled) => self.forward(filled, &mut actions),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Forwards the content of the first `filled` buffers.
    fn forward(&mut self, filled: usize, actions: &mut Vec<Action>) {
        let now = Instant::now();
        let mut table = lock(&self.shared.table);
        for slot in 0..filled {
            let Some(received) = self.slots.received(slot) else { continue };
            let Some(from) = received.from.ip() else { continue };
            let buffer = &mut self.slots.buffer(slot)[..received.len];
            table.forward(now, from, buffer, received.stride.max(1), actions);
            self.actions.extend(actions.drain(..).map(|action| (slot, received, action)));
        }
        drop(table);
        for (slot, received, action) in self.actions.drain(..) {
            let Received { stride, ecn, .. } = received;
            let Some(from) = received.from.ip() else { continue };
            match action {
                Action::Send { range, to } => {
                    // A datagram that does not fit is dropped: a queue would only add delay.
                    self.udp.send(to, ecn, &self.slots.buffer(slot)[range], stride);
                }
                Action::Reply(reply) => {
                    self.udp.send(from, None, &reply, reply.len());
                }
                Action::Unknown(range) => {
                    let datagram = &self.slots.buffer(slot)[range];
                    let Some(answer) = self.shared.reflector.answer(from, datagram) else {
                        self.shared.metrics.unauthentic.add(1);
                        continue;
                    };
                    let ReflectorAnswer { packet, from_other_port, after } = answer;
                    match (from_other_port, after.is_zero()) {
                        (false, true) => drop(self.udp.send(from, None, &packet, packet.len())),
                        (false, false) => self.shared.reflector.schedule(now + after, from, packet),
                        (true, true) => {
                            if let Some(other) = &self.shared.other_port {
                                other.answer(&self.udp, from, &packet);
                            }
                        }
                        // A request has only one of the two.
                        (true, false) => {}
                    }
                }
            }
        }
    }
}
