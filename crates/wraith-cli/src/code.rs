//! The side that made a code: it is waited with, and what happens to it is told. Usually that is the sender;
//! `crate::made` is the receiver that makes one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use wraith_discovery::{Giver, Happened, Lan, Place, Places, Ticket, Waiting, rendezvous, wait};
use zeroize::Zeroizing;

use crate::args::{MeetingArgs, SendArgs, continuing};
use crate::failure::{Exit, Failure};
use crate::output::{Event, Reporter};

/// Makes a code for `ticket` and waits with it wherever the arguments say. None if a ticket was asked for, or if there is
/// no place to wait at. `give_up` is called when the code has ended unused.
pub fn offer(
    args: &SendArgs,
    ticket: &Ticket,
    reporter: &Arc<Reporter>,
    give_up: impl Fn(Failure) + Send + Sync + 'static,
) -> Result<Option<Waiting>, Failure> {
    if args.ticket || args.code.is_some() {
        return Ok(None);
    }
    let mut places = places_of(&args.meeting);
    if let (Some(address), Lan::All) = (args.listen, &places.lan)
        && !address.ip().is_unspecified()
    {
        // Who cannot reach the sender there need not hear of it.
        places.lan = Lan::With(address.ip());
    }
    let story = Story { reporter: Arc::clone(reporter), again: continuing::command(), give_up };
    let (ticket, everywhere) =
        (ticket.clone(), args.listen.is_none_or(|a| a.ip().is_unspecified()));
    let make = move |seen: Option<IpAddr>| with_seen(&ticket, seen.filter(|_| everywhere));
    let life = Duration::from_secs(args.life());
    // Of several, who refuses or dies leaves the place to somebody else; the sender counts who has everything.
    let uses = args.receivers().filter(|n| *n == 1).unwrap_or(u32::MAX);
    let tell = move |happened| story.tell(happened);
    let waiting = wait(&places, Giver::Holder, life, uses, make, tell)
        .map_err(|error| Failure::new(Exit::Other, format!("cannot make a code: {error}")))?;
    if waiting.places().is_empty() {
        let why = nowhere(&waiting);
        reporter.warn(format!(
            "there is no place to meet by code ({why}), so here is the ticket, which needs none"
        ));
        return Ok(None);
    }
    Ok(Some(waiting))
}

/// Why there is no place to wait at.
pub fn nowhere(waiting: &Waiting) -> String {
    let why: Vec<_> = waiting.missing().iter().map(|(p, why)| format!("{p}: {why}")).collect();
    match why.is_empty() {
        true => "--lan is off and there is no --rendezvous".to_owned(),
        false => why.join("; "),
    }
}

/// The places that the arguments name.
pub fn places_of(args: &MeetingArgs) -> Places {
    let server = args.rendezvous.as_deref().map(str::trim).filter(|server| !server.is_empty());
    Places { lan: args.lan.clone(), rendezvous: server.map(with_port) }
}

/// Where a code is waited, for scripts.
pub fn places(waiting: &Waiting) -> Vec<String> {
    waiting.places().iter().map(name).collect()
}

/// A place, for scripts.
pub fn name(place: &Place) -> String {
    match place {
        Place::Lan => "lan".to_owned(),
        Place::Rendezvous(server) => server.clone(),
    }
}

/// Says where the code is good, and for how long.
pub fn explain(waiting: &Waiting, args: &SendArgs, reporter: &Reporter) {
    explain_places(waiting, &args.meeting, args.life(), reporter);
    match args.receivers() {
        Some(1) => {}
        Some(n) => reporter.say(format!(
            "{n} receivers can use it, at once or one after the other; a wrong guess ends it for all."
        )),
        None => reporter.say(
            "Any number of receivers can use it; a wrong guess ends it for all. Ctrl-C ends the sending.",
        ),
    }
}

/// The same for whoever made the code.
pub fn explain_places(waiting: &Waiting, args: &MeetingArgs, expires: u64, reporter: &Reporter) {
    // What a rendezvous server lacks is told by who tries to reach it.
    let lan = waiting.missing().iter().find(|(place, _)| *place == Place::Lan);
    if let Some((place, why)) = lan
        && args.lan != Lan::Off
    {
        reporter.warn(format!("not waiting {place}: {why}"));
    }
    let places: Vec<_> = waiting.places().iter().map(ToString::to_string).collect();
    if waiting.places().iter().any(|place| *place != Place::Lan) {
        reporter.say("(it needs the same --rendezvous, or WRAITH_RENDEZVOUS)");
    }
    let life = match expires {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    };
    reporter.say(format!(
        "\nWaiting {}.\nThe code is good for one try within {life}. Ctrl-C stops.",
        places.join(" and ")
    ));
}

/// The ticket with the address that a rendezvous server saw, if it is a new one: good when the router in between forwards
/// the port. It comes before loopback, which is tried last.
pub fn with_seen(ticket: &Ticket, seen: Option<IpAddr>) -> Zeroizing<Vec<u8>> {
    let mut addresses = ticket.addresses().to_vec();
    let port = addresses.first().map(SocketAddr::port);
    if let (Some(ip), Some(port)) = (seen, port)
        && !ip.is_loopback()
        && addresses.iter().all(|address| address.ip() != ip)
    {
        let loopback = addresses.iter().position(|address| address.ip().is_loopback());
        addresses.insert(loopback.unwrap_or(addresses.len()), SocketAddr::new(ip, port));
    }
    let ticket = Ticket::new(ticket.node_id(), ticket.capability().clone(), addresses);
    Zeroizing::new(ticket.encode())
}

/// A server as `HOST:PORT`.
pub fn with_port(server: &str) -> String {
    let bare_ipv6 = server.parse::<std::net::Ipv6Addr>().is_ok();
    let port = rendezvous::DEFAULT_PORT;
    if bare_ipv6 {
        format!("[{server}]:{port}")
    } else if server.contains(':') && !server.ends_with(']') {
        server.to_owned()
    } else {
        format!("{server}:{port}")
    }
}

/// Tells what happens to the code.
struct Story<G> {
    reporter: Arc<Reporter>,
    again: String,
    give_up: G,
}

impl<G: Fn(Failure)> Story<G> {
    fn tell(&self, happened: Happened) {
        match happened {
            Happened::Used(place) => {
                self.event("used", Some(&place), None);
                self.reporter.say(format!("The code was used {place}."));
            }
            Happened::WrongGuess(place) => {
                self.event("wrong_guess", Some(&place), None);
                let message = format!(
                    "somebody {place} tried the code with wrong words; it is burned, and nobody got anything"
                );
                (self.give_up)(Failure::new(Exit::WrongCode, message).hint(format!(
                    "if your partner mistyped it, run again and say the new code: {}; if not, somebody is guessing",
                    self.again
                )));
            }
            Happened::Expired => {
                self.event("expired", None, None);
                let message = "the code has expired, nobody used it in time";
                (self.give_up)(Failure::new(Exit::PeerNotFound, message).hint(format!(
                    "for a new one run again: {}; --expires SECONDS gives more time",
                    self.again
                )));
            }
            Happened::Lost(place, why) => {
                self.event("lost", Some(&place), Some(&why));
                self.reporter.warn(format!("cannot wait {place} now ({why}); still trying"));
            }
            Happened::Back(place) => {
                self.event("back", Some(&place), None);
                self.reporter.say(format!("Waiting {place} again."));
            }
            // Only for a code that a receiver made.
            Happened::Given(..) => {}
        }
    }

    fn event(&self, state: &str, place: Option<&Place>, message: Option<&str>) {
        let place = place.map(name);
        self.reporter.event(&Event::Code { state, place: place.as_deref(), message });
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;
    use wraith_discovery::Capability;

    use super::*;

    #[test]
    fn the_address_that_a_server_saw_comes_before_loopback_and_once() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let node_id = SecretIdentity::from_seed([1; 32]).node_id();
        let own = vec![address("10.0.0.1:9"), address("127.0.0.1:9")];
        let ticket = Ticket::new(node_id, Capability::from_bytes([2; 16]), own.clone());
        let with = |seen: Option<&str>| {
            let bytes = with_seen(&ticket, seen.map(|ip| ip.parse().unwrap()));
            Ticket::decode(&bytes).unwrap().addresses().to_vec()
        };
        let seen = [own[0], address("192.0.2.1:9"), own[1]];
        assert_eq!(with(Some("192.0.2.1")), seen);
        for nothing_new in [None, Some("10.0.0.1"), Some("127.0.0.7")] {
            assert_eq!(with(nothing_new), own);
        }
    }

    #[test]
    fn a_server_without_a_port_gets_the_usual_one() {
        for (given, meant) in [
            ("example.org", "example.org:49737"),
            ("example.org:1", "example.org:1"),
            ("192.0.2.1", "192.0.2.1:49737"),
            ("2001:db8::1", "[2001:db8::1]:49737"),
            ("[2001:db8::1]", "[2001:db8::1]:49737"),
            ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ] {
            assert_eq!(with_port(given), meant);
        }
    }
}
