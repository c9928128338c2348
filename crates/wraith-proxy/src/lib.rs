//! Proxy client: TCP through SOCKS5 and HTTP proxies, UDP through SOCKS5 proxies.
//!
//! ```text
//!   url, environment       which proxy, for which host
//!   proxy                  one attempt with a time limit: connect, handshake, return the stream
//!   ├── socks5             the handshake of RFC 1928 and RFC 1929
//!   └── http_connect       CONNECT of RFC 9110
//!   association            UDP through SOCKS5: the destination and the header of datagrams
//! ```
//!
//! **Why no library.** A SOCKS5 handshake is at most three exchanges of a few bytes each, and HTTP
//! CONNECT is one exchange. `tokio-socks` lacks UDP ASSOCIATE. `fast-socks5` has it, but only with
//! an async socket of its own, and it includes a server. A library for HTTP CONNECT would bring a
//! whole HTTP stack. wraith has two more requirements: the I/O thread sends whole batches from its
//! own UDP socket, and every proxy has the same limits.
//!
//! Invariants:
//!
//! - A handshake reads nothing beyond the proxy's answer. The first byte of the returned stream is
//!   therefore the first byte from the target.
//! - The length of the proxy's answer is limited, and the whole attempt ends within
//!   [`Proxy::timeout`].
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
