//! A lock on a nameplate for all processes of this machine.
//!
//! On Linux it is an abstract Unix socket: its names belong to the network namespace, as the local
//! network does. All users share them, and the kernel frees a name when its process ends. Other
//! systems have no such lock; there, claims ([`super::claim`]) also reach this machine.

/// A locked nameplate. Drop releases it.
#[derive(Debug)]
pub struct NameplateLock {
    #[cfg(target_os = "linux")]
    _socket: Option<std::os::unix::net::UnixDatagram>,
}

impl NameplateLock {
    /// Whether the lock covers all processes of this machine.
    pub const COVERS_HOST: bool = cfg!(target_os = "linux");

    /// Locks a nameplate. `None` if another process has it.
    #[cfg(target_os = "linux")]
    pub fn take(nameplate: u32) -> Option<Self> {
        use std::io::ErrorKind;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};

        let name = format!("wraith nameplate {nameplate}");
        let bound = SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixDatagram::bind_addr(&address));
        match bound {
            Ok(socket) => Some(Self { _socket: Some(socket) }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            // A system without such sockets; the claim on the network remains.
            Err(_) => Some(Self { _socket: None }),
        }
    }

    /// Succeeds always: there is no lock on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn take(_nameplate: u32) -> Option<Self> {
        Some(Self {})
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_nameplate_is_locked_until_its_lock_is_dropped() {
        // No code has this number.
        let number = 4_000_000_000;
        let lock = NameplateLock::take(number).expect("it is free");
        assert!(NameplateLock::take(number).is_none());
        drop(lock);
        assert!(NameplateLock::take(number).is_some());
    }
}
