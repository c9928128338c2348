//! Selection of the network interfaces for meetings.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Interfaces of the local network to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lan {
    /// Every interface.
    #[default]
    All,
    /// None.
    Off,
    /// The interface with this name.
    Named(String),
    /// The interface with this address. Use it for an endpoint bound to that address, which reaches
    /// no other network.
    With(IpAddr),
}

impl FromStr for Lan {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            // An empty environment variable is treated as unset.
            "all" | "" => Self::All,
            "off" => Self::Off,
            name => Self::Named(name.to_owned()),
        })
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub index: u32,
    /// One of its IPv4 addresses; `None` excludes it from the IPv4 group.
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: bool,
    pub is_loopback: bool,
}

impl Lan {
    /// Returns the reason why [`Self::interfaces`] is empty.
    pub(crate) fn missing(&self) -> String {
        match self {
            Self::Named(name) => {
                let name = name.escape_debug();
                format!("there is no interface called {name}, or it has no address")
            }
            Self::With(ip) => format!("no interface has the address {ip}"),
            Self::All | Self::Off => "there is no network interface".to_owned(),
        }
    }

    /// Returns the current interfaces. Empty if there is no local network. If loopback is the only
    /// interface, it is included only if it was selected.
    pub fn interfaces(&self) -> Vec<Interface> {
        if *self == Self::Off {
            return Vec::new();
        }
        let all = if_addrs::get_if_addrs().unwrap_or_default();
        let wanted: Option<&str> = match self {
            Self::Named(name) => Some(name),
            Self::With(ip) => match all.iter().find(|i| i.ip() == *ip) {
                Some(found) => Some(&found.name),
                // A loopback address without an entry, such as 127.0.0.2, belongs to loopback; any
                // other address no longer exists.
                None if ip.is_loopback() => all.iter().find(|i| i.is_loopback()).map(|i| &*i.name),
                None => return Vec::new(),
            },
            Self::All | Self::Off => None,
        };
        if wanted.is_none() && all.iter().all(if_addrs::Interface::is_loopback) {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        for address in all.iter().filter(|a| wanted.is_none_or(|name| a.name == name)) {
            let Some(index) = address.index else { continue };
            let is_loopback = address.is_loopback();
            let interface = Interface { index, ipv4: None, ipv6: false, is_loopback };
            let interface = found.entry(index).or_insert(interface);
            match address.ip() {
                IpAddr::V4(ip) => interface.ipv4 = interface.ipv4.or(Some(ip)),
                IpAddr::V6(_) => interface.ipv6 = true,
            }
        }
        found.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_a_network_when_asked_for() {
        let interfaces = Lan::With(Ipv4Addr::LOCALHOST.into()).interfaces();
        assert_eq!(interfaces.len(), 1);
        assert_eq!(interfaces[0].ipv4, Some(Ipv4Addr::LOCALHOST));
        assert_eq!(Lan::With([127, 0, 0, 9].into()).interfaces(), interfaces);
    }

    #[test]
    fn a_disabled_or_absent_network_has_no_interfaces() {
        for lan in [Lan::Off, Lan::Named("no such".into()), Lan::With([192, 0, 2, 1].into())] {
            assert_eq!(lan.interfaces(), []);
        }
    }

    #[test]
    fn the_words_of_the_option_are_understood() {
        let parse = |text: &str| text.parse::<Lan>().unwrap();
        assert_eq!((parse("all"), parse(""), parse("off")), (Lan::All, Lan::All, Lan::Off));
        assert_eq!(parse("wlan0"), Lan::Named("wlan0".into()));
    }
}
