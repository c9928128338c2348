//! Servers by way of the proxies that people have.
//!
//! Invariant: where a proxy is named for a host, that host's ports are reached through it or not at all: by TCP, and by UDP if it is a
//! SOCKS5 proxy that grants an association.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use wraith_proxy::{Association, Environment, Proxy, ProxyError, ProxyUrl, Scheme, UrlError};
use wraith_relay::{
    ASSOCIATION_HEADER_MAX, Associating, Connect, ConnectRelay, Connected, Connecting, Direct,
    UdpAssociation,
};

/// How long a proxy is waited for. Less than a relay's client gives a whole attempt (10 s), so that it is the proxy that is named when it
/// does not answer.
const PROXY_TIMEOUT: Duration = Duration::from_secs(8);

/// Which servers, relays and rendezvous servers, are reached through which proxy. What goes directly from machine to machine does not go
/// through one.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Choice);

#[derive(Clone, Debug, Default)]
enum Choice {
    #[default]
    None,
    One(ProxyUrl),
    Environment(Environment),
}

impl Proxies {
    /// None: servers are reached straight.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// This one for every server: `socks5://[USER:PASSWORD@]HOST:PORT` or `http://…`.
    ///
    /// # Errors
    /// It is none, in words for people and without the text, which may have a password in it.
    pub fn one(url: &str) -> Result<Self, UrlError> {
        url.parse().map(|url| Self(Choice::One(url)))
    }

    /// Those that the environment names, with its exceptions: `https_proxy`, `HTTPS_PROXY`, `all_proxy`, `ALL_PROXY`, `no_proxy`, `NO_PROXY`.
    ///
    /// # Errors
    /// The variable that names none, and why.
    pub fn of_environment() -> Result<Self, (&'static str, UrlError)> {
        Environment::read().map(|environment| Self(Choice::Environment(environment)))
    }

    /// The proxy for a host, without its credentials; `None` if there is none for it.
    #[must_use]
    pub fn for_host(&self, host: &str) -> Option<&ProxyUrl> {
        match &self.0 {
            Choice::None => None,
            Choice::One(url) => Some(url),
            Choice::Environment(environment) => environment.proxy_for(host),
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

/// A proxy that has understood and refuses does so again; one that did not answer may the next time.
fn refusal(error: ProxyError) -> io::Error {
    match error {
        ProxyError::NoUdp { .. } | ProxyError::Denied { .. } => {
            io::Error::new(io::ErrorKind::Unsupported, error)
        }
        error => io::Error::other(error),
    }
}

/// An association of `wraith-proxy`, as relays use one.
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
    fn udp_is_asked_of_socks5_proxies_alone() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(proxies_of("socks5", proxy).associate("relay.example", 443).is_some());
        assert!(proxies_of("http", proxy).associate("relay.example", 443).is_none());
        assert!(Proxies::none().associate("relay.example", 443).is_none());
    }
}
