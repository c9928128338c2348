//! The UDP thread: receives whole batches, consults the table once per batch, and sends whole
//! batches.
//!
//! Other threads hand over datagrams received over TLS through a bounded queue. Such a datagram
//! must leave from the local address that its receiver expects, which this thread's socket
//! remembers.
//!
//! Invariant: the table's lock is not held during a system call.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use wraith_core::punch::ReflectorAnswer;
use wraith_transport::mover::{Received, RecvSlots, Udp};

use super::shared::Shared;
use super::table::Action;
use crate::lock::lock;

/// Pause after a socket error.
const PAUSE: Duration = Duration::from_millis(10);

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
