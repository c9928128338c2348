//! What can go wrong between us and a proxy: for people, and without a credential in it.

use std::io;
use std::time::Duration;

/// Why there is no connection through a proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// No TCP connection to the proxy itself.
    #[error("the proxy {proxy} cannot be reached ({source}): check its address, and that it runs")]
    Unreachable {
        /// Host and port.
        proxy: String,
        source: io::Error,
    },
    /// It took the connection, and then the time ran out.
    #[error("the proxy {proxy} did not answer within {} s: it may be busy, or not a proxy", .limit.as_secs())]
    NoAnswer { proxy: String, limit: Duration },
    /// It closed the connection, or the network did, before it had answered.
    #[error("the proxy {proxy} broke the connection off ({source})")]
    BrokenOff { proxy: String, source: io::Error },
    /// An answer that no proxy of this kind gives.
    #[error("what answers at {proxy} is no {kind} proxy: check the scheme and the port of its URL")]
    NotAProxy {
        proxy: String,
        /// As in a sentence.
        kind: &'static str,
    },
    /// It wants credentials, and there are none.
    #[error(
        "the proxy {proxy} wants a user and a password: put them into its URL (SCHEME://USER:PASSWORD@HOST:PORT)"
    )]
    CredentialsWanted { proxy: String },
    /// It does not know the user, or not with this password.
    #[error("the proxy {proxy} refuses the user and password of its URL: check them")]
    CredentialsRefused { proxy: String },
    /// It understood, and made no connection.
    #[error("the proxy {proxy} makes no connection to {target}: {denial}")]
    Denied { proxy: String, target: String, denial: Denial },
    /// Not a name that a proxy could be asked for.
    #[error("{0:?} is no host name or address")]
    BadTarget(String),
    /// An HTTP proxy, or a SOCKS5 proxy without UDP ASSOCIATE.
    #[error("the proxy {proxy} carries no UDP: TCP goes through it all the same")]
    NoUdp { proxy: String },
}

/// Why a proxy made no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// Its rules forbid it: SOCKS5 code 2, HTTP 403.
    #[error("its rules forbid it; ask who runs it")]
    Forbidden,
    /// It has no way to the host, or the host no such port open.
    #[error("it does not get there; the host may be down, or the port closed")]
    NoWay,
    /// It does not know the name.
    #[error("it does not know the name")]
    UnknownHost,
    /// UDP, or CONNECT as such.
    #[error("it does not offer that")]
    NotOffered,
    /// The number is the protocol's own.
    #[error("it failed (code {0})")]
    Code(u16),
}
