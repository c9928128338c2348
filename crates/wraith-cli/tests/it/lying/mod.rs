//! Peers that speak the real protocol over real sockets and lie. A test controls them step by step.
//!
//! The crates of the workspace do the framing, so that a test only contains the lie. A failed write
//! never fails a test: the process under test may close the connection at any moment, and the test
//! expects exactly that.

pub mod canaries;
pub mod receiver;
pub mod sender;

use wraith_transfer::message::Message;
use wraith_transport::{RecvStream, block_on};

pub const CHUNK: usize = 256 << 10;

/// The secret in a lying sender's ticket.
pub const SECRET: [u8; 16] = [0x5e; 16];

/// Reads the next message; `None` if the stream ends first.
fn read_message(stream: &mut RecvStream) -> Option<Message> {
    let mut prefix = [0; 4];
    block_on(stream.read_exact(&mut prefix)).ok()?;
    let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
    block_on(stream.read_exact(&mut body)).ok()?;
    Some(Message::from_bytes(&body).unwrap())
}

/// Returns the peak memory of a process so far, in bytes.
pub fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// Maximum memory of a process, for every behaviour of its peer.
pub const MEMORY_MAX: usize = 128 << 20;
