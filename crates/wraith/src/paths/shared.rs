//! Which socket a role of a node gets.
//!
//! All roles that accept peers share one socket, so they share its I/O thread, its sessions at
//! relays and its port mapping, too. Roles that only dial use the same socket while it exists.
//! Otherwise they share one of their own, with a port chosen by the system: the usual port of a
//! node follows from its NodeId, and would show an observer which node dials.
//!
//! An observer of the network sees that the roles of one socket belong to one program.
//! [`Binding::Own`] prevents that. A peer that knows two roles links them by the NodeId in any case.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use wraith_discovery::contact::usual_port;
use wraith_transport::Door;

use super::{Inner, SocketPaths, lock};
use crate::error::{Cause, Error, ErrorKind};
use crate::node_core::{ANY_ADDRESS, NodeCore};

/// The socket for a role.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binding {
    /// The shared socket of the roles that accept peers. If this role is the first, the socket is
    /// bound to `port` if it is free, else to the usual port or any other.
    Accepting { port: Option<u16> },
    /// For a role that only dials.
    Dialling,
    /// A socket for this role alone.
    Own(SocketAddr),
}

/// The shared sockets of a node. Each lives as long as its roles.
#[derive(Debug, Default)]
pub(crate) struct SharedSockets {
    accepting: Mutex<Weak<Inner>>,
    dialling: Mutex<Weak<Inner>>,
}

impl SharedSockets {
    /// Opens a door of a socket for a new role.
    ///
    /// # Errors
    /// The address is in use, or the system provides no socket.
    pub fn open(
        &self,
        core: &Arc<NodeCore>,
        binding: Binding,
        door: Door,
    ) -> Result<SocketPaths, Error> {
        Ok(SocketPaths::of_role(self.get(core, binding)?, door))
    }

    /// Returns the socket for one more role.
    fn get(&self, core: &Arc<NodeCore>, binding: Binding) -> Result<Arc<Inner>, Error> {
        match binding {
            Binding::Own(address) => Inner::bind(core, address).map(Arc::new),
            Binding::Accepting { port } => shared(&self.accepting, || bind_usual(core, port)),
            Binding::Dialling => {
                if let Some(accepting) = joined(&lock(&self.accepting)) {
                    return Ok(accepting);
                }
                shared(&self.dialling, || Inner::bind(core, ANY_ADDRESS))
            }
        }
    }
}

fn joined(socket: &Weak<Inner>) -> Option<Arc<Inner>> {
    socket.upgrade().filter(|socket| socket.join())
}

/// Returns the socket if it has a role, else binds a new one.
fn shared(
    place: &Mutex<Weak<Inner>>,
    bind: impl FnOnce() -> Result<Inner, Error>,
) -> Result<Arc<Inner>, Error> {
    let mut place = lock(place);
    if let Some(socket) = joined(&place) {
        return Ok(socket);
    }
    let socket = Arc::new(bind()?);
    *place = Arc::downgrade(&socket);
    Ok(socket)
}

/// Binds the first of these ports that is free: `port`, the usual one, any.
fn bind_usual(core: &Arc<NodeCore>, port: Option<u16>) -> Result<Inner, Error> {
    let bind = |port| Inner::bind(core, SocketAddr::new(ANY_ADDRESS.ip(), port));
    if let Some(bound) = port.and_then(|port| bind(port).ok()) {
        return Ok(bound);
    }
    bind(usual_port(core.id())).or_else(|why| {
        let bound = bind(ANY_ADDRESS.port())?;
        Ok(Inner { usual_taken: Some(why), ..bound })
    })
}

impl SocketPaths {
    /// Returns why the socket is not on the usual port, where contacts search.
    pub fn usual_taken(&self) -> Option<Error> {
        let (bound, usual) = (self.endpoint.local_addr().port(), usual_port(self.inner.core.id()));
        if bound == usual {
            return None;
        }
        let other = || {
            let message = format!("another operation of this program uses port {bound} already");
            Error::because(ErrorKind::Other, message, Cause::CannotBind(self.endpoint.local_addr()))
        };
        Some(self.inner.usual_taken.clone().unwrap_or_else(other))
    }
}
