//! Checks whether the router forwards a port to this machine. The caller releases a granted
//! mapping.

use std::num::NonZeroU16;
use std::time::Duration;

use tokio::time::timeout;
use wraith_portmap::{PortMapping, Status as Mapping, Unmapped};
use wraith_transport::Endpoint;

use super::Check;
use crate::args::MeetingArgs;

const NAME: &str = "port mapping";
/// Timeout for PCP, NAT-PMP and UPnP. UPnP devices spread their answers over a second.
const ROUTER_WAIT: Duration = Duration::from_secs(5);

/// Asks the router for a mapping. Also returns the granted mapping, for release.
pub async fn try_it(args: &MeetingArgs, socket: &Endpoint) -> (Check, Option<PortMapping>) {
    let port = NonZeroU16::new(socket.local_addr().port());
    let Some(port) = port.filter(|_| args.port_mapping.is_on() && !args.relay_only) else {
        let why = if args.relay_only { "turned off (--relay-only)" } else { "off" };
        let meaning = "the router is not asked to forward a port (--port-mapping)";
        return (Check::none(NAME, why, meaning), None);
    };
    let mapping = PortMapping::request(port);
    let mut status = mapping.status();
    let answered = timeout(ROUTER_WAIT, status.wait_for(|now| *now != Mapping::Requesting)).await;
    let said = answered.ok().and_then(Result::ok).map_or(Mapping::Requesting, |now| now.clone());
    (check(&said), Some(mapping))
}

fn check(said: &Mapping) -> Check {
    let found = said.to_string();
    let next = "enable UPnP or PCP in its settings; or forward a UDP port to this machine, and use --listen [::]:PORT";
    let meaning = "peers get through only if hole punching works on both sides";
    match said {
        Mapping::Mapped { .. } => {
            Check::ok(NAME, found, "peers can reach this machine from outside while it waits")
        }
        Mapping::Requesting => Check::warn(NAME, "the router does not answer", meaning).next(next),
        Mapping::Unmapped(why) => match **why {
            Unmapped::NoGateway => Check::none(NAME, found, "there is no router to ask"),
            Unmapped::Refused(_) => Check::warn(NAME, found, meaning).next(next),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wraith_portmap::{Protocol, Refusal};

    use super::super::Status;
    use super::*;

    #[test]
    fn router_answers_are_reported_with_advice() {
        let external = "11.1.1.2:7000".parse().unwrap();
        let mapped = check(&Mapping::Mapped { external, protocol: Protocol::Pcp });
        assert!(mapped.status == Status::Ok && mapped.found.contains("11.1.1.2:7000"));
        let none = check(&Mapping::Unmapped(Arc::new(Unmapped::NoGateway)));
        assert_eq!(none.status, Status::None);
        let refused = Unmapped::Refused(vec![(Protocol::Pcp, Refusal::NoAnswer)]);
        for said in [Mapping::Unmapped(Arc::new(refused)), Mapping::Requesting] {
            let check = check(&said);
            assert!(check.status == Status::Warn && check.next.unwrap().contains("--listen"));
        }
    }
}
