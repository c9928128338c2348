//! The client against proxies of the tests' own, honest and hostile, on loopback.

mod connect;
mod hostile;
mod server;
mod udp;
