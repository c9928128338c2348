//! Local addresses to listen on, as typed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The end of an error about `IP:PORT`.
const EXACTLY: &str = "expected IP:PORT, as in 127.0.0.1:5555 or [::1]:5555";

/// Parses `IP:PORT`, or a port for all addresses of this machine: `5555`, `:5555` or `*:5555`.
///
/// # Errors
/// Another form, such as a range of ports or a host name.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix('*').filter(|rest| rest.starts_with(':')).unwrap_or(text);
    let port = port.strip_prefix(':').unwrap_or(port);
    if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() {
        let port = port.parse().map_err(|_| "the highest port is 65535".to_owned())?;
        return Ok((Ipv6Addr::UNSPECIFIED, port).into());
    }
    let alone = "expected IP:PORT, or a port alone for all addresses";
    parse(text).map_err(|why| format!("{why}: {alone}"))
}

/// Parses `IP:PORT`.
///
/// # Errors
/// Another form, with the part that is missing or wrong.
pub fn exactly(text: &str) -> Result<SocketAddr, String> {
    parse(text).map_err(|why| format!("{why}: {EXACTLY}"))
}

/// Parses `IP:PORT`. The error is only the fault.
fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Some((host, port)) = text.rsplit_once(':')
        && let (Ok(ip), Ok(port)) = (host.parse::<Ipv6Addr>(), port.parse())
    {
        let address = SocketAddr::new(ip.into(), port);
        return Err(format!("an IPv6 address before a port needs brackets, as in {address}"));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Err(format!("the port is missing, as in {}", SocketAddr::new(ip, 5555)));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_range = |port: &str| {
        let ends = port.split_once(['-', ':', ',']);
        ends.is_some_and(|(first, last)| is_number(first) && is_number(last))
    };
    let why = if is_range(port) || is_range(text) {
        "one port can be used, not a range"
    } else if is_number(port) && port.parse::<u16>().is_err() {
        "the highest port is 65535"
    } else if is_number(port)
        && host.chars().any(|c| c.is_ascii_alphabetic())
        && !host.contains(':')
    {
        "the address must be an IP address of this machine, not a name"
    } else {
        "this is no address with a port"
    };
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_all_addresses() {
        for text in ["5555", ":5555", "*:5555", "[::]:5555"] {
            assert_eq!(listening(text), Ok("[::]:5555".parse().unwrap()), "{text}");
        }
        for text in ["127.0.0.1:0", "0.0.0.0:5555", "[::1]:5555"] {
            assert_eq!(listening(text), Ok(text.parse().unwrap()));
        }
    }

    #[test]
    fn an_error_names_the_fault() {
        for (text, fault) in [
            ("5555-6000", "not a range"),
            (":5555-6000", "not a range"),
            ("127.0.0.1:5555-6000", "not a range"),
            ("5555:6000", "not a range"),
            ("5555,5556", "not a range"),
            ("65536", "the highest port is 65535"),
            (":99999999999999999999", "the highest port is 65535"),
            ("127.0.0.1:70000", "the highest port is 65535"),
            ("127.0.0.1", "the port is missing, as in 127.0.0.1:5555"),
            ("::1", "the port is missing, as in [::1]:5555"),
            ("[::1]", "the port is missing, as in [::1]:5555"),
            ("::1:5555", "needs brackets, as in [::1]:5555"),
            ("localhost:5555", "not a name"),
            ("relay.example.org:443", "not a name"),
            ("", "expected IP:PORT"),
            (":", "expected IP:PORT"),
            ("*", "expected IP:PORT"),
            ("-1", "expected IP:PORT"),
            ("here", "expected IP:PORT"),
            ("udp://0.0.0.0:5555", "expected IP:PORT"),
        ] {
            let said = listening(text).unwrap_err();
            assert!(said.contains(fault), "{text}: {said}");
        }
    }

    #[test]
    fn an_exact_address_needs_its_ip_address() {
        assert_eq!(exactly("127.0.0.1:9100"), Ok("127.0.0.1:9100".parse().unwrap()));
        for text in ["9100", ":9100"] {
            assert!(exactly(text).unwrap_err().contains("expected IP:PORT"));
        }
    }
}
