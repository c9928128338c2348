//! Connection attempts through a proxy, with one time limit for the whole attempt.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::association::Association;
use crate::error::{Denial, ProxyError};
use crate::socks5::{Command, Failure};
use crate::target::Target;
use crate::url::{ProxyUrl, Scheme};
use crate::{http_connect, socks5};

/// Default time limit of a whole attempt. It includes the proxy's own connection to the target,
/// which may be far away and slow.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A proxy, and the time limit of an attempt through it.
#[derive(Clone, Debug)]
pub struct Proxy {
    url: ProxyUrl,
    timeout: Duration,
}

impl Proxy {
    /// Creates a proxy with [`CONNECT_TIMEOUT`].
    #[must_use]
    pub fn new(url: ProxyUrl) -> Self {
        Self { url, timeout: CONNECT_TIMEOUT }
    }

    /// Sets the time limit of each attempt.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    #[must_use]
    pub fn url(&self) -> &ProxyUrl {
        &self.url
    }

    /// Opens a TCP connection through the proxy to `host`, a name or an address. The proxy resolves
    /// the name.
    ///
    /// # Errors
    /// [`ProxyError`], with a message for people.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ProxyError> {
        let target = Target::new(host, port)?;
        let attempt = async {
            let mut stream = self.connect_to_proxy().await?;
            let credentials = self.url.credentials();
            let done = match self.url.scheme() {
                Scheme::Socks5 => {
                    let command = Command::Connect;
                    let handshake = socks5::handshake(&mut stream, credentials, command, &target);
                    handshake.await.map(|_| ())
                }
                Scheme::Http => http_connect::handshake(&mut stream, credentials, &target).await,
            };
            done.map_err(|failure| self.error(failure, &target))?;
            Ok(stream)
        };
        self.with_timeout(attempt).await
    }

    /// Opens a UDP association through the proxy to `port` of `host`, a name or an address.
    ///
    /// # Errors
    /// [`ProxyError`], with a message for people; [`ProxyError::NoUdp`] if the proxy does not
    /// support UDP.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn associate(&self, host: &str, port: u16) -> Result<Association, ProxyError> {
        let target = Target::new(host, port)?;
        if self.url.scheme() != Scheme::Socks5 {
            return Err(ProxyError::NoUdp { proxy: self.url.authority() });
        }
        let attempt = async {
            let mut control = self.connect_to_proxy().await?;
            // The source address of the caller's datagrams, as the proxy will observe it, is
            // unknown. RFC 1928 §7 specifies zeros for this case.
            let any =
                if control.peer_addr().is_ok_and(|peer| peer.is_ipv4()) { "0.0.0.0" } else { "::" };
            let any = Target::new(any, 0)?;
            let command = Command::UdpAssociate;
            let credentials = self.url.credentials();
            let bound = socks5::handshake(&mut control, credentials, command, &any).await.map_err(
                |failure| match failure {
                    Failure::Denied(Denial::NotOffered) => {
                        ProxyError::NoUdp { proxy: self.url.authority() }
                    }
                    failure => self.error(failure, &any),
                },
            )?;
            let nonsense = || self.error(Failure::InvalidReply, &any);
            let port =
                bound.map(|bound| bound.port()).filter(|port| *port != 0).ok_or_else(nonsense)?;
            let association = Association::new(control, port, target);
            association.map_err(|error| self.error(error.into(), &any))
        };
        self.with_timeout(attempt).await
    }

    async fn connect_to_proxy(&self) -> Result<TcpStream, ProxyError> {
        let proxy = self.url.authority();
        let connected = TcpStream::connect((self.url.host(), self.url.port())).await;
        let stream = connected.map_err(|source| ProxyError::Unreachable { proxy, source })?;
        // The messages are small and each waits for an answer. A stream that refuses the option
        // works, too.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn with_timeout<T>(
        &self,
        attempt: impl Future<Output = Result<T, ProxyError>>,
    ) -> Result<T, ProxyError> {
        let limit = self.timeout;
        let late = |_| ProxyError::NoAnswer { proxy: self.url.authority(), limit };
        timeout(limit, attempt).await.map_err(late)?
    }

    fn error(&self, failure: Failure, target: &Target) -> ProxyError {
        let proxy = self.url.authority();
        match failure {
            Failure::Io(source) => ProxyError::BrokenOff { proxy, source },
            Failure::InvalidReply => {
                let kind = match self.url.scheme() {
                    Scheme::Socks5 => "SOCKS5",
                    Scheme::Http => "HTTP",
                };
                ProxyError::NotAProxy { proxy, kind }
            }
            Failure::CredentialsWanted => ProxyError::CredentialsWanted { proxy },
            Failure::CredentialsRefused => ProxyError::CredentialsRefused { proxy },
            Failure::Denied(denial) => {
                ProxyError::Denied { proxy, target: target.authority(), denial }
            }
        }
    }
}
