//! Checks the meeting places for codes: the local network, and the rendezvous server if one is
//! configured.

use wraith::Proxies;
use wraith_discovery::lan::{ProbeResult, probe};
use wraith_discovery::{Lan, PlaceError, rendezvous};

use super::Check;
use crate::args::MeetingArgs;
use crate::code::places;

pub async fn check(args: &MeetingArgs, proxies: &Proxies, report: &mut impl FnMut(Check)) {
    let places = places(args);
    report(match &places.lan {
        Lan::Off => {
            Check::none("local network", "off", "codes cannot meet there (--lan, WRAITH_LAN)")
        }
        lan => multicast(&probe(lan).await),
    });
    report(match &places.rendezvous {
        None => {
            Check::none("rendezvous", "none configured", "codes can meet on the local network only")
                .next("for codes over the internet: --rendezvous HOST, or WRAITH_RENDEZVOUS")
        }
        Some(server) => server_check(server, proxies).await,
    });
}

fn multicast(probed: &Result<ProbeResult, PlaceError>) -> Check {
    const NAME: &str = "local network";
    let instead = "use --rendezvous HOST or --ticket";
    let result = match probed {
        Ok(result) => result,
        Err(why) => {
            let meaning = "codes cannot meet on the local network";
            return Check::warn(NAME, why.to_string(), meaning).next(instead);
        }
    };
    match (result.interfaces, result.joined, result.ipv4, result.ipv6) {
        (0, ..) => Check::warn(NAME, "no interface", "codes cannot meet on the local network")
            .next(instead),
        (_, 0, ..) => {
            let meaning =
                "no interface supports multicast, so codes cannot meet on the local network";
            Check::warn(NAME, "multicast is off", meaning).next(instead)
        }
        (_, _, false, false) => {
            let meaning = "a packet to the multicast group did not come back: a firewall blocks UDP port 49737";
            Check::warn(NAME, "multicast packets do not arrive", meaning)
                .next(format!("allow that port, or {instead}"))
        }
        (_, joined, ipv4, ipv6) => {
            let families = match (ipv4, ipv6) {
                (true, true) => "IPv4 and IPv6",
                (true, false) => "IPv4",
                _ => "IPv6",
            };
            let found = format!(
                "multicast works on {joined} of {} interfaces, {families}",
                result.interfaces
            );
            Check::ok(
                NAME,
                found,
                "codes can meet here, if the switch or access point forwards multicast",
            )
        }
    }
}

async fn server_check(server: &str, proxies: &Proxies) -> Check {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    match rendezvous::probe(server, proxies).await {
        Ok(seen) => {
            let by = proxies.for_host(host.trim_matches(['[', ']']));
            let found = match by {
                None => format!("{server} answers, and sees this machine at {}", seen.ip()),
                Some(proxy) => format!("{server} answers through {proxy}"),
            };
            Check::ok("rendezvous", found, "codes can meet there")
        }
        Err(why) => {
            let meaning = "codes cannot meet at this server";
            Check::fail("rendezvous", format!("{server}: {why}"), meaning)
                .next("is wraith rendezvous running there, and is its TCP port open?")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn missing_multicast_is_a_warning_with_a_workaround() {
        let result =
            |interfaces, joined, ipv4| Ok(ProbeResult { interfaces, joined, ipv4, ipv6: false });
        for probed in [
            result(0, 0, false),
            result(2, 0, false),
            result(2, 2, false),
            Err(PlaceError::Unusable("no".into())),
        ] {
            let check = multicast(&probed);
            assert_eq!(check.status, Status::Warn);
            assert!(check.next.unwrap().contains("--rendezvous"));
        }
        assert_eq!(multicast(&result(2, 1, true)).status, Status::Ok);
    }

    #[tokio::test]
    async fn an_unreachable_server_is_a_failure() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let check = server_check(&free.to_string(), &Proxies::none()).await;
        assert_eq!(check.status, Status::Fail);
        assert!(check.found.contains(&free.to_string()));
    }
}
