//! Proxy URLs: `socks5://USER:PASSWORD@HOST:PORT`, `http://HOST:PORT`.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

/// Maximum length of a user name or a password, in bytes: RFC 1929 encodes each length in one byte.
const CREDENTIAL_BYTES_MAX: usize = 255;
/// Maximum length of a host name, in bytes (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 253;
const SOCKS_PORT: u16 = 1080;
const HTTP_PORT: u16 = 80;

/// Protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `socks5://` or `socks5h://`. With either scheme, the proxy resolves names.
    Socks5,
    /// `http://`: CONNECT.
    Http,
}

/// Address, protocol and credentials of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    scheme: Scheme,
    host: String,
    port: u16,
    credentials: Option<Credentials>,
}

/// A user name and a password. Wiped when dropped, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) user: Zeroizing<Vec<u8>>,
    pub(crate) password: Zeroizing<Vec<u8>>,
}

/// Reason why a text is not a proxy URL. Never contains the text itself, which may include a
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("a proxy URL starts with socks5:// or http://")]
    NoScheme,
    #[error(
        "proxies that are reached by TLS (https://) are not supported; many listen for http:// as well"
    )]
    Tls,
    #[error("only socks5:// and http:// proxies are supported")]
    OtherScheme,
    #[error("the proxy's URL has no valid host name or address")]
    BadHost,
    #[error("the proxy's port is not a number from 1 to 65535")]
    BadPort,
    #[error(
        "the user or password in the proxy's URL is longer than 255 bytes, empty, or has a % that is no escape"
    )]
    BadCredentials,
    #[error("a proxy's URL ends after its port")]
    Trailing,
}

impl ProxyUrl {
    /// Returns the protocol of the proxy.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns host and port, in the form used in messages.
    #[must_use]
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

/// Returns `host:port`, with brackets around an IPv6 address.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Omits the credentials.
impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Socks5 => "socks5",
            Scheme::Http => "http",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

impl FromStr for ProxyUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(UrlError::NoScheme)?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "socks5" | "socks5h" => (Scheme::Socks5, SOCKS_PORT),
            "http" => (Scheme::Http, HTTP_PORT),
            "https" => return Err(UrlError::Tls),
            _ => return Err(UrlError::OtherScheme),
        };
        // A user may type any character in a password, so the last @ is the separator.
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(Credentials::parse(credentials)?), place),
            None => (None, rest),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.contains(['/', '?', '#']) {
            return Err(UrlError::Trailing);
        }
        let (host, port) = split_authority(place)?;
        let port = port.map_or(Ok(default_port), |port| match port.parse() {
            Ok(0) | Err(_) => Err(UrlError::BadPort),
            Ok(port) => Ok(port),
        })?;
        Ok(Self { scheme, host, port, credentials })
    }
}

fn split_authority(place: &str) -> Result<(String, Option<&str>), UrlError> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or(UrlError::BadHost)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| UrlError::BadHost)?;
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return Err(UrlError::BadPort),
        }
    } else {
        let (host, port) = match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        };
        if !is_host(host) {
            return Err(UrlError::BadHost);
        }
        (host, port)
    };
    Ok((host.to_owned(), port))
}

/// Returns whether `host` may be a name or an IPv4 address: visible ASCII without any character
/// that is special in a URL or a header line.
pub(crate) fn is_host(host: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(plain)
}

impl Credentials {
    fn parse(text: &str) -> Result<Self, UrlError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = |text| unescape(text).ok_or(UrlError::BadCredentials);
        let credentials = Self { user: decoded(user)?, password: decoded(password)? };
        let fits = |bytes: &[u8]| bytes.len() <= CREDENTIAL_BYTES_MAX;
        if credentials.user.is_empty() || !fits(&credentials.user) || !fits(&credentials.password) {
            return Err(UrlError::BadCredentials);
        }
        Ok(credentials)
    }
}

/// Decodes percent-encoding: `%41` becomes `A` (RFC 3986 §2.1).
fn unescape(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            (digit()? << 4 | digit()?) as u8
        } else {
            byte
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<ProxyUrl, UrlError> {
        text.parse()
    }

    #[test]
    fn a_url_has_a_scheme_a_host_and_perhaps_a_port_and_credentials() {
        let url = parse("socks5h://me:p%40ss:w@proxy.example:9050").unwrap();
        assert_eq!((url.scheme(), url.host(), url.port()), (Scheme::Socks5, "proxy.example", 9050));
        let credentials = url.credentials().unwrap();
        assert_eq!(
            (&credentials.user[..], &credentials.password[..]),
            (&b"me"[..], &b"p@ss:w"[..])
        );
        assert_eq!(parse("socks5://10.0.0.1").unwrap().port(), 1080);
        assert_eq!(parse("HTTP://proxy/").unwrap().port(), 80);
        assert_eq!(parse("http://a:b@c@proxy:8080").unwrap().host(), "proxy");
        let v6 = parse("http://[2001:db8::1]:3128").unwrap();
        assert_eq!(
            (v6.host(), v6.to_string().as_str()),
            ("2001:db8::1", "http://[2001:db8::1]:3128")
        );
    }

    #[test]
    fn invalid_proxy_urls_are_rejected_with_the_reason() {
        for (text, error) in [
            ("proxy:8080", UrlError::NoScheme),
            ("https://proxy", UrlError::Tls),
            ("socks4://proxy", UrlError::OtherScheme),
            ("http://", UrlError::BadHost),
            ("http://a b", UrlError::BadHost),
            ("http://a\r\nX:1", UrlError::BadHost),
            ("http://[::1", UrlError::BadHost),
            ("http://proxy:0", UrlError::BadPort),
            ("http://proxy:65536", UrlError::BadPort),
            ("http://[::1]8080", UrlError::BadPort),
            ("http://%zz@proxy", UrlError::BadCredentials),
            ("http://:password@proxy", UrlError::BadCredentials),
            ("http://proxy/path", UrlError::Trailing),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        let long = format!("socks5://{}:x@proxy", "u".repeat(256));
        assert_eq!(parse(&long), Err(UrlError::BadCredentials));
    }

    #[test]
    fn no_credential_is_shown() {
        let url = parse("socks5://topuser:topsecret@proxy").unwrap();
        for shown in [url.to_string(), format!("{url:?}"), url.authority()] {
            assert!(!shown.contains("top"), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn accepted_urls_survive_text(text in "(socks5|http)://([a-z:%0-9]{0,9}@)?[a-z.:\\[\\]0-9-]{0,20}") {
            if let Ok(url) = parse(&text) {
                let again = parse(&url.to_string()).unwrap();
                prop_assert_eq!((again.host(), again.port()), (url.host(), url.port()));
            }
        }
    }
}
