//! The receiver's side of a code: what was typed becomes a ticket.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith::state::{SavedTicket, StateDir};
use wraith_discovery::{Code, CodeError, Lan, NotMet, Place, Places, Search, Ticket, Unmet};
use wraith_transfer::Role;

use crate::args::ReceiveArgs;
use crate::ask::{self, Line};
use crate::code::{name, places_of};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::made;
use crate::output::{Event, Reporter};

/// What the user wants to fetch with.
#[derive(Debug)]
pub enum Wanted {
    Ticket(Ticket),
    Code(Code),
    /// A code is to be made for the sender.
    NewCode,
}

/// What the command line says, or the user when asked.
pub fn wanted(args: &ReceiveArgs, reporter: &Reporter) -> Result<Wanted, Failure> {
    if args.code {
        return Ok(Wanted::NewCode);
    }
    let words: Vec<_> = args.wanted.iter().map(|word| word.to_string_lossy()).collect();
    if !words.is_empty() && words != ["-"] {
        return parse(&words.join(" "));
    }
    let nothing = || {
        Failure::new(Exit::Usage, "a code or a ticket is needed: wraith receive 7-crater-lemon")
            .hint("wraith send on the other machine prints it")
    };
    if !io::stdin().is_terminal() {
        let text = reporter.ask("").filter(|line| !line.is_empty()).ok_or_else(nothing)?;
        return parse(&text);
    }
    loop {
        let line = ask::read("Code or ticket (Tab completes): ")
            .map_err(|error| Failure::disk("cannot read from the terminal", &error))?;
        match line {
            Line::Interrupted => return Err(Failure::new(Exit::Interrupted, "stopped")),
            Line::Typed(text) if !text.is_empty() => match parse(&text) {
                // Nothing is lost by asking again: nothing was sent.
                Err(failure) => reporter.warn(failure.message),
                wanted => return wanted,
            },
            Line::Typed(_) | Line::End => return Err(nothing()),
        }
    }
}

fn parse(text: &str) -> Result<Wanted, Failure> {
    if Code::looks_like(text) {
        return text.parse().map(Wanted::Code).map_err(|error: CodeError| {
            Failure::new(Exit::Usage, error.to_string())
                .hint("nothing was sent, so the code is still good: type it again")
        });
    }
    text.parse().map(Wanted::Ticket).map_err(|error| {
        Failure::new(Exit::Usage, format!("this is neither a code nor a ticket: {error}"))
            .hint("a code looks like 7-crater-lemon; of a ticket copy the whole line")
    })
}

/// The ticket, which a code brings from the sender. With a code also where the ticket is kept until everything is there,
/// because a code works once.
pub fn ticket(
    wanted: &Wanted,
    args: &ReceiveArgs,
    home: &StateDir,
    reporter: &Reporter,
    interrupt: &Interrupt,
) -> Result<(Ticket, Option<SavedTicket>), Failure> {
    let code = match wanted {
        Wanted::Ticket(ticket) => return Ok((ticket.clone(), None)),
        Wanted::NewCode => {
            let (code, ticket, from) = made::await_sender(args, reporter, interrupt)?;
            let saved = SavedTicket::of(home, &code)?;
            saved.keep(&ticket)?;
            return Ok((nearest_first(&ticket, from), Some(saved)));
        }
        Wanted::Code(code) => code,
    };
    let saved = SavedTicket::of(home, code)?;
    if let Some(ticket) = saved.ticket()? {
        reporter.say("Going on with what this code brought before.");
        return Ok((ticket, Some(saved)));
    }
    let places = places_of(&args.meeting);
    let deadline = Instant::now() + Duration::from_secs(args.timeout);
    let search = Search::new(code, None, deadline);
    interrupt.on_signal(search.canceller());
    let met = search.run(&places).map_err(|why| match interrupt.caught() {
        Some(exit) => Failure::new(exit, "stopped"),
        None => failure(&why, code, &places, Role::Sender),
    })?;
    reporter.event(&Event::Met { place: &name(&met.place) });
    let ticket = Ticket::decode(&met.ticket).map_err(|error| {
        Failure::new(Exit::Verification, format!("the sender sent no ticket: {error}"))
            .hint("it may be a newer version of wraith: update this one")
    })?;
    saved.keep(&ticket)?;
    Ok((nearest_first(&ticket, met.from), Some(saved)))
}

/// Where the sender was met comes first: there it can be reached, even by an address that means nothing elsewhere and is
/// in no ticket.
fn nearest_first(ticket: &Ticket, from: Option<SocketAddr>) -> Ticket {
    let mut addresses = ticket.addresses().to_vec();
    if let (Some(mut from), Some(port)) = (from, addresses.first().map(SocketAddr::port)) {
        from.set_port(port);
        addresses.retain(|address| *address != from);
        addresses.insert(0, from);
    }
    Ticket::new(ticket.node_id(), ticket.capability().clone(), addresses)
}

/// Why the other side, the one that made the code, was not met.
pub fn failure(unmet: &Unmet, code: &Code, places: &Places, other: Role) -> Failure {
    let number = code.number();
    let mut at = Vec::new();
    if places.lan != Lan::Off {
        at.push(Place::Lan);
    }
    at.extend(places.rendezvous.clone().map(Place::Rendezvous));
    at.retain(|place| unmet.unusable.iter().all(|(unusable, _)| unusable != place));
    let at = at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let unusable = unmet.unusable.iter().map(|(place, why)| format!("{place}: {why}"));
    let unusable = unusable.collect::<Vec<_>>().join("; ");
    let besides = match unusable.is_empty() {
        true => String::new(),
        false => format!("; not looked {unusable}"),
    };
    let new_code = match other {
        Role::Sender => "ask the sender to run wraith send again and to tell you the new code",
        Role::Receiver => {
            "ask the receiver to run wraith receive --code again and to tell you the new code"
        }
    };
    let (exit, message, hint) = match &unmet.why {
        NotMet::NoPlace => (
            Exit::Usage,
            "there is no place to look for the other side: --lan is off and there is no --rendezvous"
                .into(),
            "allow one of them, or ask the sender for the ticket: wraith send --ticket",
        ),
        NotMet::Unreachable(_) => (
            Exit::PeerNotFound,
            format!("cannot look for the other side {unusable}"),
            match places.rendezvous {
                Some(_) => "is --rendezvous right, and does the server run?",
                None => "connect this machine to the network of the other; wraith doctor shows what it has",
            },
        ),
        NotMet::Nobody | NotMet::Ahead | NotMet::Cancelled => (
            Exit::PeerNotFound,
            format!("nobody waits with number {number} {at}{besides}"),
            "is wraith still running there? On different networks both sides need the same --rendezvous",
        ),
        NotMet::Busy => (
            Exit::PeerNotFound,
            format!("there is no room for us {at} now"),
            "wait a minute and try again; the code is still good",
        ),
        NotMet::Silent => (
            Exit::PeerNotFound,
            "somebody answered and then fell silent".into(),
            "the try may be spent; if it does not work again, ask for a new code",
        ),
        NotMet::Used => {
            (Exit::WrongCode, "the code was used by somebody else already".into(), new_code)
        }
        NotMet::Expired => (Exit::WrongCode, "the code has expired".into(), new_code),
        NotMet::Burned => (
            Exit::WrongCode,
            "somebody tried this code with wrong words before, so it is burned".into(),
            new_code,
        ),
        NotMet::Wrong => (
            Exit::WrongCode,
            format!(
                "the words are not those of the one who waits with number {number}; this code is burned now"
            ),
            new_code,
        ),
    };
    Failure::new(exit, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_tickets_are_told_apart() {
        assert!(matches!(parse("7-crater-lemon"), Ok(Wanted::Code(_))), "the docs say this one");
        let slip = parse("7-cratr-lemon").unwrap_err();
        assert_eq!(slip.exit, Exit::Usage);
        assert!(slip.message.contains("cratr"), "{}", slip.message);
        assert!(parse("hello").unwrap_err().message.contains("neither"));
    }
}
