//! TCP and UDP through the proxies that people have.
//!
//! ```text
//!   url, environment       which proxy, for which host
//!   proxy                  one bounded attempt: connect, speak, hand the stream over
//!   ├── socks5             the handshake of RFC 1928 and RFC 1929
//!   └── http_connect       CONNECT of RFC 9110
//!   association            UDP through SOCKS5: where datagrams go, and their header
//! ```
//!
//! **Why the handshakes are ours.** They are three exchanges of a few bytes each. `tokio-socks` has no UDP ASSOCIATE;
//! `fast-socks5` has it around an async socket, and brings a server; of HTTP CONNECT a client brings a whole HTTP stack.
//! An I/O thread wants its own socket, which sends whole batches, and the same bounds on all of them.
//!
//! Invariants: of what a proxy says no more is read than the answer, so the first byte of a stream that is handed over is the
//! first of the other side; an answer is bounded, and the whole attempt ends within [`Proxy::timeout`]; credentials are sent to
//! the proxy and shown nowhere.

#![forbid(unsafe_code)]

mod association;
mod environment;
mod error;
mod http_connect;
mod proxy;
mod socks5;
mod target;
mod url;

pub use association::{Association, HEADER_BYTES_MAX};
pub use environment::Environment;
pub use error::{Denial, ProxyError};
pub use proxy::{CONNECT_TIMEOUT, Proxy};
pub use url::{Credentials, ProxyUrl, Scheme, UrlError};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
