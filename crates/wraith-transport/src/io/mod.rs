//! The I/O thread: owns the socket and the protocol core of one endpoint.
//!
//! Each round has five steps:
//! 1. Receive a batch.
//! 2. Drain the inbox: the requests of the handles.
//! 3. Hand events to the handles.
//! 4. Wake the tasks that wait for them, each once. The state is unlocked meanwhile.
//! 5. Send until nothing is due.
//!
//! Then the thread sleeps in `ppoll` until a datagram, a wake-up or the core's next timeout. If a
//! round leaves work undone (more datagrams waiting, more to send than one round's share), the next
//! round follows without sleep.
//!
//! While the thread sleeps and few streams are in use, a caller that has ended a message runs a
//! round itself ([`InlineRound`](crate::wake::InlineRound)). The thread's state is locked for that:
//! the thread holds the lock whenever it is awake and wakes no task.
//!
//! Invariant: after every change of the core's state, the core's outputs are drained before the
//! thread sleeps.

mod doors;
mod established;
mod events;
mod happy_eyeballs;
mod movers;
mod punching;
mod requests;
mod rounds;
mod sleep;
mod state;

pub(crate) use self::movers::Movers;
pub(crate) use self::state::{CLOSE_WAIT_MAX, IoThread};
