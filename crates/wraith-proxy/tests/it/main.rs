//! Tests of the client against test proxies, well-behaved and hostile, on loopback.

mod connect;
mod hostile;
mod server;
mod udp;
