//! Checks the configured relays: admission by TLS and by UDP, round-trip time, and key.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith::state::{IDENTITY_FILE, StateDir, users_folder};
use wraith::{Proxies, RelayServer, SecretIdentity};
use wraith_relay::{
    ConnectRelay, Refusal, RelayClient, RelayConfig, RelayError, RelayTransport, Relays,
    Status as RelayStatus, Token,
};

use super::Check;
use super::clock::RelayClock;
use super::observer::Observer;
use crate::code::RELAY_PORT;

const NAME: &str = "relay";
/// Timeout for the TLS connection and the welcome: four round trips, and a proxy.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Timeout for the UDP round trip after that: three datagrams are sent, 0.3, 0.6 and 1.2 s apart.
const UDP_WAIT: Duration = Duration::from_millis(2200);

/// The result for one relay.
#[derive(Debug)]
pub struct RelayResult {
    pub check: Check,
    /// The relay's clock, if it has sent it.
    pub clock: Option<RelayClock>,
    /// Set if the relay can report the outside address of our sockets.
    pub observer: Option<Observer>,
    /// Must live while the relay is asked.
    pub client: Option<RelayClient>,
}

/// Connects to all relays in parallel. Returns the results in the order of `servers`.
pub async fn try_all(
    clients: &Relays,
    servers: &[RelayServer],
    proxies: &Proxies,
    shows_identity: bool,
) -> Vec<RelayResult> {
    let identity = if shows_identity { identity() } else { None };
    let mut trying = JoinSet::new();
    for (at, server) in servers.iter().cloned().enumerate() {
        let (clients, proxies, identity) = (clients.clone(), proxies.clone(), identity.clone());
        trying.spawn(async move { (at, try_one(&clients, &server, proxies, identity).await) });
    }
    let mut all = trying.join_all().await;
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, tried)| tried).collect()
}

/// Returns our long-term identity, for relays with an allowlist. Does not create one.
fn identity() -> Option<SecretIdentity> {
    let folder = users_folder().filter(|folder| folder.join(IDENTITY_FILE).exists())?;
    StateDir::in_folder(folder).identity().ok()
}

async fn try_one(
    clients: &Relays,
    server: &RelayServer,
    proxies: Proxies,
    identity: Option<SecretIdentity>,
) -> RelayResult {
    let through = proxies.for_host(&server.host).map(ToString::to_string);
    let may_carry_udp = proxies.associate(&server.host, server.port).is_some();
    let mut config = RelayConfig::new(&server.host, server.port);
    config.token = server.token.as_deref().map(Token::new);
    config.identity = identity;
    config.connect = Arc::new(proxies);
    let connected = timeout(CONNECT_WAIT, clients.connect(config)).await;
    let client = match connected.unwrap_or(Err(RelayError::Timeout)) {
        Ok(client) => client,
        Err(error) => {
            let check = unusable(server, through.as_deref(), &error);
            return RelayResult { check, clock: None, observer: None, client: None };
        }
    };
    let mut watched = client.status();
    let is_known = |status: &RelayStatus| {
        let has_udp = status.udp.is_some() || may_carry_udp;
        status.rtt.is_some() && (status.transport == RelayTransport::Udp || !has_udp)
    };
    // After the timeout, the check reports the current state.
    let _ = timeout(UDP_WAIT, watched.wait_for(is_known)).await;
    let status = watched.borrow().clone();
    let observer =
        status.observe.zip(status.udp).filter(|_| status.transport == RelayTransport::Udp);
    let other = status.udp_other;
    let observer = observer.map(|(secret, of)| Observer::Relay { secret, of, other });
    let check = usable(server, through.as_deref(), &status);
    let clock = status.clock_difference.map(|by| (server.to_string(), by));
    RelayResult { check, clock, observer, client: Some(client) }
}

fn usable(server: &RelayServer, through: Option<&str>, status: &RelayStatus) -> Check {
    let by = if status.transport == RelayTransport::Udp { "over TLS and UDP" } else { "over TLS" };
    let through_proxy = through.map(|proxy| format!(" through {proxy}")).unwrap_or_default();
    let rtt = status.rtt.map_or_else(
        || "round trip not measured".to_owned(),
        |rtt| format!("round trip {:.1} ms", rtt.as_secs_f64() * 1e3),
    );
    let pin = status.pin.map(|pin| BASE32_NOPAD.encode(&pin).to_ascii_lowercase());
    let pin = pin.map(|pin| format!(", key {pin}")).unwrap_or_default();
    let found = format!("{server} answers {by}{through_proxy}, {rtt}{pin}");
    let meaning = "it carries transfers without a direct path";
    if status.draining {
        return Check::warn(NAME, found, "it is about to stop and accepts no new clients")
            .next("ask its operator, or use another relay with --relay");
    }
    match (status.transport, through, status.udp) {
        (RelayTransport::Udp, ..) => Check::ok(NAME, found, meaning),
        (_, Some(_), _) => {
            let meaning = format!("{meaning}; the proxy carries TLS only, which is slower");
            Check::ok(NAME, found, meaning)
        }
        (_, None, None) => Check::ok(NAME, found, format!("{meaning}; it offers no UDP")),
        (_, None, Some(udp)) => {
            let meaning = format!("{meaning}, over TLS, which is slower; UDP does not get through");
            let next = format!(
                "allow outgoing UDP to port {}; the firewall that blocks it probably blocks direct transfers too",
                udp.port()
            );
            Check::warn(NAME, found, meaning).next(next)
        }
    }
}

fn unusable(server: &RelayServer, through: Option<&str>, error: &RelayError) -> Check {
    let through = through.map(|proxy| format!(" through {proxy}")).unwrap_or_default();
    let found = format!("{server}{through}: {error}");
    let next = match error {
        RelayError::Refused(Refusal::Identity) => {
            "ask its operator to admit this machine (wraith id), and use --relay-identity"
                .to_owned()
        }
        RelayError::Refused(_) => {
            "ask its operator for access; --relay-token sets a token".to_owned()
        }
        RelayError::Protocol => "is it wraith relay that runs there?".to_owned(),
        _ if server.port == RELAY_PORT => {
            "is wraith relay running there, and is TCP port 443 open?".to_owned()
        }
        _ => format!(
            "is wraith relay running there, and is TCP port {} open? Restrictive networks usually allow port 443",
            server.port
        ),
    };
    Check::fail(NAME, found, "no transfer can use this relay").next(next)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn server(port: u16) -> RelayServer {
        RelayServer { host: "relay.example".into(), port, token: None }
    }

    #[test]
    fn the_relay_check_depends_on_udp_reachability() {
        let of = |transport, udp: Option<&str>, through| {
            let mut status = RelayStatus::default();
            status.transport = transport;
            status.udp = udp.map(|udp| udp.parse().unwrap());
            usable(&server(443), through, &status)
        };
        let udp = Some("192.0.2.1:443");
        assert_eq!(of(RelayTransport::Udp, udp, None).status, Status::Ok);
        assert_eq!(of(RelayTransport::Tls, None, None).status, Status::Ok);
        assert_eq!(of(RelayTransport::Tls, None, Some("socks5://p:1")).status, Status::Ok);
        let stopped = of(RelayTransport::Tls, udp, None);
        assert_eq!(stopped.status, Status::Warn);
        assert!(stopped.next.unwrap().contains("UDP to port 443"));
    }

    #[test]
    fn an_unusable_relay_is_a_failure_with_advice() {
        let of = |port, error: RelayError| unusable(&server(port), None, &error);
        assert!(of(4443, RelayError::Timeout).next.unwrap().contains("port 443"));
        let refused = of(443, RelayError::Refused(wraith_relay::Refusal::Token));
        assert!(refused.status == Status::Fail && refused.next.unwrap().contains("--relay-token"));
    }
}
