//! Proxy client: TCP through SOCKS5 and HTTP proxies, UDP through SOCKS5 proxies.
//!
//! ```text
//!   url, environment       which proxy, for which host
//!   proxy                  one bounded attempt: connect, speak, hand the stream over
//!   ├── socks5             the handshake of RFC 1928 and RFC 1929
//!   └── http_connect       CONNECT of RFC 9110
//!   association            UDP through SOCKS5: where datagrams go, and their header
//! ```
//!
//! **Why our own handshakes.** They are three exchanges of a few bytes each. `tokio-socks` lacks
//! UDP ASSOCIATE. `fast-socks5` has it, but tied to an async socket, and includes a server. A
//! client for HTTP CONNECT needs a whole HTTP stack. An I/O thread needs its own socket, which
//! sends whole batches, and the same limits for every proxy.
//!
//! Invariants:
//!
//! - A handshake reads nothing beyond the proxy's answer. The first byte of the returned stream is
//!   therefore the first byte from the target.
//! - The length of an answer is limited, and the whole attempt ends within [`Proxy::timeout`].
//! - Credentials are sent to the proxy, and never logged or shown.

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

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
