//! Errors between client and proxy: messages for people, without credentials.

use std::io;
use std::time::Duration;

/// Reason why a connection through a proxy failed.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The TCP connection to the proxy itself failed.
    #[error("the proxy {proxy} cannot be reached ({source}): check its address, and that it runs")]
    Unreachable {
        /// Host and port.
        proxy: String,
        source: io::Error,
    },
    /// The proxy accepted the connection, but did not answer in time.
    #[error("the proxy {proxy} did not answer within {} s: it may be busy, or not a proxy", .limit.as_secs())]
    NoAnswer { proxy: String, limit: Duration },
    /// The proxy or the network closed the connection before the answer was complete.
    #[error("the proxy {proxy} closed the connection ({source})")]
    BrokenOff { proxy: String, source: io::Error },
    /// The answer is invalid for a proxy of this kind.
    #[error("the server at {proxy} is not a {kind} proxy: check the scheme and port of its URL")]
    NotAProxy {
        proxy: String,
        /// Name of the protocol, as the message contains it.
        kind: &'static str,
    },
    /// The proxy demands credentials, and the URL contains no credentials.
    #[error(
        "the proxy {proxy} requires a user name and a password: put them into its URL (SCHEME://USER:PASSWORD@HOST:PORT)"
    )]
    CredentialsWanted { proxy: String },
    /// The proxy rejected the user name or the password.
    #[error("the proxy {proxy} refuses the user and password of its URL: check them")]
    CredentialsRefused { proxy: String },
    /// The proxy understood the request and declined it.
    #[error("the proxy {proxy} refuses to connect to {target}: {denial}")]
    Denied { proxy: String, target: String, denial: Denial },
    /// The target is not a valid host name or address.
    #[error("{0:?} is not a host name or address")]
    BadTarget(String),
    /// UDP was requested from an HTTP proxy, or from a SOCKS5 proxy without UDP ASSOCIATE.
    #[error("the proxy {proxy} does not support UDP; TCP still works")]
    NoUdp { proxy: String },
}

/// Reason why a proxy declined a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The proxy's rules forbid the connection: SOCKS5 code 2, HTTP 403.
    #[error("its rules forbid it; ask its administrator")]
    Forbidden,
    /// The proxy cannot reach the host, or the port is closed.
    #[error("it cannot reach the host; the host may be down, or the port closed")]
    Unreachable,
    /// The proxy cannot resolve the host name.
    #[error("it cannot resolve the host name")]
    UnknownHost,
    /// The proxy does not support the command, UDP ASSOCIATE or CONNECT.
    #[error("it does not support this command")]
    NotOffered,
    /// Any other error, with the code of the proxy's protocol.
    #[error("it failed (code {0})")]
    Code(u16),
}
