//! The UDP socket of a peer, with the kernel buffers that wraith requests.

use std::net::{SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use socket2::{Domain, Protocol, Type};

/// Binds to `address`, with `buffer_bytes` of kernel memory in each direction where
/// `net.core.{r,w}mem_max` allows it.
///
/// # Errors
/// The address cannot be bound.
pub fn bind(address: SocketAddr, buffer_bytes: usize) -> Result<UdpSocket> {
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // A smaller buffer than requested is slower, not wrong.
    let _ = socket.set_recv_buffer_size(buffer_bytes);
    let _ = socket.set_send_buffer_size(buffer_bytes);
    socket.bind(&address.into()).with_context(|| format!("cannot bind {address}"))?;
    Ok(socket.into())
}
