//! Proxy settings from environment variables, with the semantics of curl and most programs.
//!
//! | variable | meaning |
//! |---|---|
//! | `https_proxy`, `HTTPS_PROXY` | proxy for traffic that looks like HTTPS, as the TCP traffic of wraith does |
//! | `all_proxy`, `ALL_PROXY` | proxy for traffic without a more specific proxy |
//! | `no_proxy`, `NO_PROXY` | hosts to reach directly: names including subdomains, addresses, networks (`10.0.0.0/8`), `*` |
//!
//! Lower-case names take precedence. A value without a scheme means an HTTP proxy; an empty value
//! is treated as unset.

use std::net::IpAddr;

use crate::url::{ProxyUrl, UrlError};

/// Proxy settings of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    proxy: Option<ProxyUrl>,
    exceptions: Vec<NoProxyRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NoProxyRule {
    Everything,
    /// A name and its subdomains: lower case, without a leading dot.
    Name(String),
    /// A network: an address and the length of its prefix in bits.
    Network(IpAddr, u8),
}

impl Environment {
    /// Reads the settings from the variables of this process.
    ///
    /// # Errors
    /// The name of the proxy variable, and why its value is invalid. A value that is not UTF-8 is
    /// treated as unset.
    pub fn read() -> Result<Self, (&'static str, UrlError)> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the settings from a lookup function.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn from_variables(
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, (&'static str, UrlError)> {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let proxy = match names.into_iter().find_map(|name| Some((name, set(name)?))) {
            None => None,
            Some((name, value)) => {
                let value = if value.contains("://") { value } else { format!("http://{value}") };
                Some(value.parse().map_err(|error| (name, error))?)
            }
        };
        let exceptions = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
        let exceptions = exceptions.split([',', ' ']).filter_map(NoProxyRule::parse).collect();
        Ok(Self { proxy, exceptions })
    }

    /// Returns the proxy for `host`, or `None` for a direct connection.
    #[must_use]
    pub fn proxy_for(&self, host: &str) -> Option<&ProxyUrl> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse().ok();
        let direct = self.exceptions.iter().any(|exception| exception.covers(&host, address));
        self.proxy.as_ref().filter(|_| !direct)
    }
}

impl NoProxyRule {
    fn parse(word: &str) -> Option<Self> {
        let word = word.trim();
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        if word == "*" {
            return Some(Self::Everything);
        }
        if let Ok(address) = bare.parse() {
            return Some(Self::Network(address, bits(address)));
        }
        if let Some((address, prefix)) = word.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let prefix = prefix.parse().ok()?;
            return (prefix <= bits(address)).then_some(Self::Network(address, prefix));
        }
        let name = word.trim_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Name(name))
    }

    fn covers(&self, host: &str, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Everything, _) => true,
            (Self::Name(name), None) => host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
            (Self::Network(network, prefix), Some(address)) => {
                shared_bits(*network, address).is_some_and(|shared| shared >= u32::from(*prefix))
            }
            _ => false,
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the number of leading bits that two addresses have in common. `None` if their address
/// families differ.
fn shared_bits(a: IpAddr, b: IpAddr) -> Option<u32> {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        (IpAddr::V6(a), IpAddr::V6(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(set: &[(&str, &str)]) -> Result<Environment, (&'static str, UrlError)> {
        Environment::from_variables(|name| {
            let value = set.iter().find(|(set, _)| *set == name)?.1;
            Some(value.to_owned())
        })
    }

    fn proxy(set: &[(&str, &str)], host: &str) -> Option<String> {
        environment(set).unwrap().proxy_for(host).map(ToString::to_string)
    }

    #[test]
    fn specific_and_lower_case_variables_take_precedence() {
        let all = ("ALL_PROXY", "socks5://all");
        let https = ("HTTPS_PROXY", "http://upper:1");
        let lower = ("https_proxy", "lower:2");
        assert_eq!(proxy(&[], "relay"), None);
        assert_eq!(proxy(&[all], "relay").unwrap(), "socks5://all:1080");
        assert_eq!(proxy(&[all, https], "relay").unwrap(), "http://upper:1");
        assert_eq!(proxy(&[all, https, lower], "relay").unwrap(), "http://lower:2");
        assert_eq!(proxy(&[all, ("https_proxy", "")], "relay").unwrap(), "socks5://all:1080");
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_the_variable() {
        let error = environment(&[("ALL_PROXY", "ftp://secret:word@x")]).unwrap_err();
        assert_eq!(error, ("ALL_PROXY", UrlError::OtherScheme));
    }

    #[test]
    fn no_proxy_rules_match_domains_addresses_and_networks() {
        let no = "localhost, .corp.example,exact.example,10.0.0.0/8,192.168.7.7,[2001:db8::1],fd00::/8,1.2.3.4/33";
        let set = [("all_proxy", "socks5://p"), ("NO_PROXY", no)];
        for direct in [
            "localhost",
            "corp.example",
            "A.corp.EXAMPLE",
            "b.exact.example.",
            "10.9.8.7",
            "192.168.7.7",
            "2001:db8::1",
            "fd12::1",
        ] {
            assert_eq!(proxy(&set, direct), None, "{direct}");
        }
        for proxied in
            ["notcorp.example", "11.0.0.1", "192.168.7.8", "1.2.3.4", "2001:db8::2", "10.example"]
        {
            assert!(proxy(&set, proxied).is_some(), "{proxied}");
        }
        assert_eq!(proxy(&[("all_proxy", "socks5://p"), ("no_proxy", "*")], "any"), None);
    }
}
