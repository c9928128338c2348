//! The UPnP description of a router: finds the services that map ports.

use roxmltree::{Document, Node, ParsingOptions};

use super::http::Url;
use crate::grant::Refusal;

/// Most elements in a description. Real descriptions have a few hundred.
const NODES_MAX: u32 = 8192;
/// Most services to try. A router has one service, or one per internet connection.
const SERVICES_MAX: usize = 4;
/// Service types without the version number, which has one digit or more.
const MAPS_PORTS: [&str; 2] = [
    "urn:schemas-upnp-org:service:WANIPConnection:",
    "urn:schemas-upnp-org:service:WANPPPConnection:",
];

/// A service that maps ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// One of [`MAPS_PORTS`] followed by the version number.
    pub kind: String,
    pub control: Url,
}

/// Returns the services in a description fetched from `page`. An empty list is an error.
pub fn services(page: &Url, xml: &[u8]) -> Result<Vec<Service>, Refusal> {
    let text = std::str::from_utf8(xml).map_err(|_| Refusal::Malformed)?;
    let document = parse(text)?;
    // UPnP 1.0: `URLBase` replaces the page's URL as the base of references.
    let base = document.descendants().find_map(|node| child_text(node, "URLBase"));
    let page = match base {
        Some(base) => Url::at(*page.host.ip(), base).ok_or(Refusal::Malformed)?,
        None => page.clone(),
    };
    let found: Vec<_> = document
        .descendants()
        .filter(|node| node.tag_name().name() == "service")
        .filter_map(|node| service(&page, node))
        .take(SERVICES_MAX)
        .collect();
    if found.is_empty() { Err(Refusal::Unsupported) } else { Ok(found) }
}

/// Parses XML without a document type and with a bounded number of elements.
pub fn parse(text: &str) -> Result<Document<'_>, Refusal> {
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    // Some routers start with an empty line or end with a NUL byte.
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    Document::parse_with_options(text, options).map_err(|_| Refusal::Malformed)
}

fn service(page: &Url, node: Node<'_, '_>) -> Option<Service> {
    let kind = child_text(node, "serviceType")?;
    let version = MAPS_PORTS.iter().find_map(|prefix| kind.strip_prefix(prefix))?;
    // The version goes into a header line and an XML attribute, so only digits are accepted.
    let plain = (1..=3).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit());
    let control = page.join(child_text(node, "controlURL")?)?;
    plain.then(|| Service { kind: kind.to_owned(), control })
}

/// Returns the text of the child element `name` in any namespace.
pub fn child_text<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let child = node.children().find(|child| child.tag_name().name() == name)?;
    child.text().map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn page() -> Url {
        Url::at(Ipv4Addr::new(192, 168, 1, 1), "http://192.168.1.1:5000/root.xml").unwrap()
    }

    fn of(kind: &str, control: &str) -> String {
        format!(
            "<service><serviceType>{kind}</serviceType><controlURL>{control}</controlURL></service>"
        )
    }

    fn root(inner: &str) -> Vec<u8> {
        format!(
            "<?xml version=\"1.0\"?><root xmlns=\"urn:schemas-upnp-org:device-1-0\">{inner}</root>"
        )
        .into_bytes()
    }

    #[test]
    fn services_that_map_ports_are_found_at_any_depth() {
        let other = of("urn:schemas-upnp-org:service:Layer3Forwarding:1", "/l3");
        let ip = of("urn:schemas-upnp-org:service:WANIPConnection:2", "/ip");
        let ppp = of("urn:schemas-upnp-org:service:WANPPPConnection:1", "ppp");
        let xml = root(&format!("<device><a>{other}<b>{ip}</b></a>{ppp}</device>"));
        let found = services(&page(), &xml).unwrap();
        let paths: Vec<_> = found.iter().map(|service| service.control.path.as_str()).collect();
        assert_eq!(paths, ["/ip", "/ppp"]);
    }

    #[test]
    fn services_elsewhere_or_of_other_types_are_ignored() {
        let kind = "urn:schemas-upnp-org:service:WANIPConnection:";
        for service in [
            of(&format!("{kind}1"), "http://10.0.0.1/ctl"),
            of(&format!("{kind}1\""), "/ctl"),
            of(&format!("{kind}1&#13;&#10;X: y"), "/ctl"),
            of(kind, "/ctl"),
            of(&format!("{kind}1"), ""),
        ] {
            assert_eq!(services(&page(), &root(&service)), Err(Refusal::Unsupported), "{service}");
        }
    }

    #[test]
    fn a_base_elsewhere_is_refused() {
        let service = of("urn:schemas-upnp-org:service:WANIPConnection:1", "/ctl");
        let with = |base: &str| root(&format!("<URLBase>{base}</URLBase>{service}"));
        let found = services(&page(), &with("http://192.168.1.1:99/")).unwrap();
        assert_eq!(found[0].control.host.port(), 99);
        assert_eq!(services(&page(), &with("http://10.0.0.1/")), Err(Refusal::Malformed));
    }

    #[test]
    fn bombs_and_endless_depth_are_refused() {
        let entities = "<!DOCTYPE a [<!ENTITY b \"bbbb\">]><root>&b;</root>";
        assert_eq!(services(&page(), entities.as_bytes()), Err(Refusal::Malformed));
        for depth in [1_000, 20_000] {
            let nested = format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
            assert!(services(&page(), nested.as_bytes()).is_err());
        }
    }
}
