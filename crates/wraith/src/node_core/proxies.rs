//! Connections to servers through the user's proxies.
//!
//! Invariant: if a proxy is configured for a host, that host is reached through the proxy or not at
//! all. This holds for TCP, and for UDP if the proxy is a SOCKS5 proxy that grants an association.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use wraith_proxy::{Association, Environment, Proxy, ProxyError, ProxyUrl, Scheme, UrlError};
use wraith_relay::{
    ASSOCIATION_HEADER_MAX, Associating, Connect, ConnectRelay, Connected, Connecting, Direct,
    UdpAssociation,
};

/// Time limit for a proxy. Less than the time limit of a relay client for a whole attempt (10 s),
/// so that the error names the silent proxy.
const PROXY_TIMEOUT: Duration = Duration::from_secs(8);

/// Selects the proxy for each server, such as a relay or a rendezvous server. Direct traffic
/// between two machines uses no proxy.
#[derive(Clone, Debug, Default)]
pub struct Proxies(ProxyChoice);

#[derive(Clone, Debug, Default)]
enum ProxyChoice {
    #[default]
    None,
    One(ProxyUrl),
    Environment(Environment),
}

impl Proxies {
    /// Uses no proxy: servers are reached directly.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Uses this proxy for every server: `socks5://[USER:PASSWORD@]HOST:PORT` or `http://…`.
    ///
    /// # Errors
    /// The URL is invalid. The message is for people, and omits the URL, which may contain a
    /// password.
    pub fn one(url: &str) -> Result<Self, UrlError> {
        url.parse().map(|url| Self(ProxyChoice::One(url)))
    }

    /// Uses the proxies and exceptions of the environment: `https_proxy`, `HTTPS_PROXY`,
    /// `all_proxy`, `ALL_PROXY`, `no_proxy`, `NO_PROXY`.
    ///
    /// # Errors
    /// The variable with an invalid URL, and why.
    pub fn of_environment() -> Result<Self, (&'static str, UrlError)> {
        Environment::read().map(|environment| Self(ProxyChoice::Environment(environment)))
    }

    /// Returns the proxy for a host, without its credentials; `None` if it has none.
    #[must_use]
    pub fn for_host(&self, host: &str) -> Option<&ProxyUrl> {
        match &self.0 {
            ProxyChoice::None => None,
            ProxyChoice::One(url) => Some(url),
            ProxyChoice::Environment(environment) => environment.proxy_for(host),
        }
    }
}

impl Connect for Proxies {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        let Some(url) = self.for_host(host) else { return Direct.connect(host, port) };
        let proxy = Proxy::new(url.clone()).timeout(PROXY_TIMEOUT);
        Box::pin(async move {
            let stream = proxy.connect(host, port).await.map_err(io::Error::other)?;
            Ok(Connected { stream: Box::new(stream), udp: None })
        })
    }

    fn connect_narrow<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        match self.for_host(host) {
            Some(_) => self.connect(host, port),
            None => Direct.connect_narrow(host, port),
        }
    }
}

impl ConnectRelay for Proxies {
    fn associate<'a>(&'a self, host: &'a str, port: u16) -> Option<Associating<'a>> {
        let url = self.for_host(host).filter(|url| url.scheme() == Scheme::Socks5)?;
        let proxy = Proxy::new(url.clone()).timeout(PROXY_TIMEOUT);
        Some(Box::pin(async move {
            let association = proxy.associate(host, port).await.map_err(refusal)?;
            Ok(Box::new(ProxyAssociation(association)) as Box<dyn UdpAssociation>)
        }))
    }
}

/// A proxy that understood the request and refused it will refuse again. A proxy that did not
/// answer may answer the next time.
fn refusal(error: ProxyError) -> io::Error {
    match error {
        ProxyError::NoUdp { .. } | ProxyError::Denied { .. } => {
            io::Error::new(io::ErrorKind::Unsupported, error)
        }
        error => io::Error::other(error),
    }
}

/// An association of `wraith-proxy` in the form that relays use.
#[derive(Debug)]
struct ProxyAssociation(Association);

const _: () = assert!(wraith_proxy::HEADER_BYTES_MAX <= ASSOCIATION_HEADER_MAX);

impl UdpAssociation for ProxyAssociation {
    fn proxy(&self) -> SocketAddr {
        self.0.proxy()
    }

    fn header(&self) -> &[u8] {
        self.0.header()
    }

    fn header_from(&self, datagram: &[u8]) -> Option<usize> {
        self.0.header_from(datagram)
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.closed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_for_every_host_and_its_url_is_shown_without_credentials() {
        let proxies = Proxies::one("socks5://topuser:topsecret@proxy.example").unwrap();
        assert_eq!(
            proxies.for_host("127.0.0.1").unwrap().to_string(),
            "socks5://proxy.example:1080"
        );
        assert!(!format!("{proxies:?}").contains("top"));
        assert!(Proxies::none().for_host("relay.example").is_none());
        let error = Proxies::one("ftp://topuser:topsecret@proxy").unwrap_err();
        assert!(!error.to_string().contains("top"), "{error}");
    }

    #[tokio::test]
    async fn a_proxy_that_is_not_there_is_named_and_nothing_else_is_tried() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = nobody.local_addr().unwrap();
        drop(nobody);
        let proxies = Proxies::one(&format!("http://{proxy}")).unwrap();
        let port = server.local_addr().unwrap().port();
        let error = proxies.connect("127.0.0.1", port).await.unwrap_err();
        assert!(error.to_string().contains(&proxy.to_string()), "{error}");
        let error = proxies_of("socks5", proxy).associate("127.0.0.1", port).unwrap().await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::Other, "it may be there later");
        let connected = Proxies::none().connect("127.0.0.1", port).await.unwrap();
        assert!(connected.udp.is_some(), "straight");
    }

    fn proxies_of(scheme: &str, proxy: SocketAddr) -> Proxies {
        Proxies::one(&format!("{scheme}://{proxy}")).unwrap()
    }

    #[test]
    fn only_socks5_proxies_get_udp_associations() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(proxies_of("socks5", proxy).associate("relay.example", 443).is_some());
        assert!(proxies_of("http", proxy).associate("relay.example", 443).is_none());
        assert!(Proxies::none().associate("relay.example", 443).is_none());
    }
}
