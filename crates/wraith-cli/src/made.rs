//! Codes that the receiver makes, when it starts first: it waits with one, and the sender goes there and gives its ticket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use wraith_discovery::{Code, Giver, Happened, Search, Ticket, wait};
use wraith_transfer::Role;
use zeroize::Zeroizing;

use crate::args::{ReceiveArgs, SendArgs};
use crate::code::{explain_places, name, nowhere, places, places_of, with_seen};
use crate::failure::{Exit, Failure};
use crate::find;
use crate::interrupt::Interrupt;
use crate::output::{Event, Reporter};

/// How long a sender looks for the receiver if no other time is asked for; as a receiver looks for its sender.
const LOOK: Duration = Duration::from_secs(10);

/// What ends the wait for a sender.
enum End {
    Given(Zeroizing<Vec<u8>>, Option<SocketAddr>),
    Failed(Failure),
}

/// Makes a code and waits until a sender with the right words has given its ticket. Also says where on the local network the
/// ticket came from.
pub fn await_sender(
    args: &ReceiveArgs,
    reporter: &Reporter,
    interrupt: &Interrupt,
) -> Result<(Code, Ticket, Option<SocketAddr>), Failure> {
    let (tell, ended) = mpsc::channel();
    let stop = tell.clone();
    interrupt.on_signal(move || {
        let stopped = Failure::new(Exit::Interrupted, "stopped");
        drop(stop.send(End::Failed(stopped)));
    });
    let life = Duration::from_secs(args.expires);
    let nothing = |_| Zeroizing::default();
    let mut waiting =
        wait(&places_of(&args.meeting), Giver::Guest, life, 1, nothing, move |happened| {
            if let Some(end) = end(happened) {
                let _ = tell.send(end);
            }
        })
        .map_err(|error| Failure::new(Exit::Other, format!("cannot make a code: {error}")))?;
    if waiting.places().is_empty() {
        let message = format!("there is no place to meet by code ({})", nowhere(&waiting));
        return Err(Failure::new(Exit::PeerNotFound, message)
            .hint("let the sender begin, with wraith send --ticket"));
    }
    show(&waiting, args, reporter);
    // With a code that nobody has seen nobody comes.
    reporter.unwritten()?;
    waiting.begin().map_err(|e| Failure::new(Exit::Other, format!("cannot wait: {e}")))?;
    match ended.recv().map_err(|_| Failure::new(Exit::Other, "nobody waits any more"))? {
        End::Failed(failure) => match interrupt.caught() {
            Some(exit) => Err(Failure::new(exit, "stopped")),
            None => Err(failure),
        },
        End::Given(bytes, from) => {
            let ticket = Ticket::decode(&bytes).map_err(|error| {
                Failure::new(Exit::Verification, format!("the sender gave no ticket: {error}"))
            })?;
            Ok((waiting.code().clone(), ticket, from))
        }
    }
}

fn end(happened: Happened) -> Option<End> {
    let again = "run wraith receive --code again and tell the sender the new code";
    Some(match happened {
        Happened::Given(ticket, from) => End::Given(ticket, from),
        Happened::WrongGuess(place) => {
            let message = format!("somebody {place} tried the code with wrong words; it is burned");
            End::Failed(Failure::new(Exit::WrongCode, message).hint(again))
        }
        Happened::Expired => {
            let message = "the code has expired, nobody used it in time";
            End::Failed(Failure::new(Exit::PeerNotFound, message).hint(again))
        }
        Happened::Used(_) | Happened::Lost(..) | Happened::Back(_) => return None,
    })
}

fn show(waiting: &wraith_discovery::Waiting, args: &ReceiveArgs, reporter: &Reporter) {
    let code = waiting.code().to_string();
    let command = format!("wraith send --code {code}");
    reporter.event(&Event::Waiting {
        code: &code,
        command: &command,
        waiting_at: &places(waiting),
        code_expires_seconds: args.expires,
    });
    reporter.say("On the other machine, run this with the files behind it:\n");
    reporter.answer(&command);
    explain_places(waiting, &args.meeting, args.expires, reporter);
}

/// Gives the ticket to the receiver that made `code`.
pub fn give(
    code: &str,
    args: &SendArgs,
    ticket: &Ticket,
    reporter: &Arc<Reporter>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let code: Code = code.parse().map_err(|error: wraith_discovery::CodeError| {
        Failure::new(Exit::Usage, error.to_string())
            .hint("nothing was sent, so the code is still good: type it again")
    })?;
    let places = places_of(&args.meeting);
    let deadline = Instant::now() + args.timeout.map_or(LOOK, Duration::from_secs);
    let ticket = ticket.clone();
    let search = Search::new(&code, Some(Box::new(move |seen| with_seen(&ticket, seen))), deadline);
    interrupt.on_signal(search.canceller());
    let met = search.run(&places).map_err(|why| match interrupt.caught() {
        Some(exit) => Failure::new(exit, "stopped"),
        None => find::failure(&why, &code, &places, Role::Receiver),
    })?;
    reporter.event(&Event::Met { place: &name(&met.place) });
    reporter.say(format!("Met the receiver {}.", met.place));
    Ok(())
}
