//! `wraith send`: prints the code or ticket first, and everything else after it.

mod narrator;

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wraith::{Cause, Congestion, Error, Node, Offer, OfferSummary, Payload, Role};

use crate::args::continuing::command as again;
use crate::args::{self, PeerName, SendArgs};
use crate::ask::Answers;
use crate::code;
use crate::contacts::{self, SaveContact, TransferPeer, after_transfer};
use crate::failure::{Exit, Failure, hints};
use crate::guess;
use crate::home;
use crate::output::{Event, Reporter, Ticker};
use crate::pipe;
use crate::report;
use crate::signals::Signals;
use narrator::SendNarrator;

/// Offers the paths until the receivers have confirmed the complete transfer.
pub async fn run(args: &SendArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    if args.code.is_some() && args.receivers > 1 {
        let message = "a code made by a receiver is for that receiver only";
        return Err(Failure::new(Exit::Usage, message)
            .hint("for several receivers, let wraith send make the code: leave out --code"));
    }
    // A sender that dials may get a relay from the contact or the code. A sender that waits has
    // only the named relays.
    let waits = args.code.is_none() && args.to.is_none();
    if waits && args.meeting.relay_only && code::relays(&args.meeting).is_empty() {
        let message = "--relay-only needs a relay, and none is named";
        return Err(Failure::new(Exit::Usage, message)
            .hint("name one with --relay HOST or WRAITH_RELAY, or leave --relay-only out"));
    }
    check_receipt(args)?;
    if let Some(failure) = guess::missing(&args.paths) {
        return Err(failure);
    }
    let signals = Signals::for_transfer(reporter)?;
    let payload = match pipe::source(args, reporter)? {
        Some(stream) => stream,
        None => Payload::paths(&args.paths),
    };
    let congestion = match args.congestion {
        args::Congestion::Cubic => Congestion::Cubic,
        args::Congestion::Bbr => Congestion::Bbr,
    };
    let state = home::open_for_transfer(reporter)?;
    let is_remembering = state.folder().is_some();
    let qlog = args.qlog.start()?;
    let node = qlog.of(code::node(&args.meeting, state)?).congestion(congestion).build();
    let node = node.map_err(|error| hints::of(&error, Role::Sender, &again()))?;
    let narrator = Arc::new(SendNarrator::new(&node, args, reporter));
    let builder = builder(&node, payload, args, &narrator)?;
    if let Some(name) = &args.to {
        announce(&node, name, reporter)?;
    }
    let start = async { builder.start().await.map_err(|error| failure(&error, &node, args)) };
    let offer = signals.or(start).await?;
    if args.to.is_none() {
        show(&offer, &node, args, reporter);
        // If the code could not be printed, no receiver can come.
        reporter.unwritten()?;
    }
    let result = wait_for_end(offer, &narrator, &signals, reporter).await;
    let is_continued = is_remembering && narrator.is_stored();
    let sent = match (signals.caught(), result) {
        (Some(_), Ok(sent)) if args.keep => {
            reporter.status(format!("Sent to {}.", narrator::Receivers(sent.receivers)));
            return narrator.check_receipt_stored();
        }
        (_, Ok(sent)) => sent,
        (Some(exit), Err(_)) => {
            let again = again();
            let hint = match narrator.started() {
                _ if args.is_piped() => stream_again(&again),
                _ if !is_continued => anew(&again),
                // A receiver that had a code and has started continues with the next run, even if
                // it is the wrong one.
                Some(who) if !args.ticket && args.to.is_none() => format!(
                    "to continue with {who}, run again: {again}; if that is not your receiver, add --new"
                ),
                _ => format!("to continue, run again: {again}"),
            };
            return Err(Failure::new(exit, "stopped").hint(hint));
        }
        (None, Err(error)) => {
            let failure = failure(&error, &node, args);
            return Err(match error.is_resumable() {
                true if args.is_piped() => failure.hint(stream_again(&again())),
                true if !is_continued => failure.hint(anew(&again())),
                _ => failure,
            });
        }
    };
    sent.complete().map_err(|error| failure(&error, &node, args))?;
    narrator.check_receipt_stored()?;
    let Some((node_id, remote)) = sent.last.clone().filter(|_| args.receivers() == Some(1)) else {
        return Ok(());
    };
    let other =
        TransferPeer { node_id, role: Role::Receiver, last_seen: node.last_seen(node_id, &remote) };
    let may_ask =
        args.to.is_none() && !args.is_piped() && !args.contacts.no_contacts && is_remembering;
    let keep = SaveContact::of(args.save_as.as_ref(), may_ask);
    after_transfer(&other, keep, &Answers::new(reporter), &signals, reporter).await
}

/// Returns the advice for a run that was not saved.
fn anew(again: &str) -> String {
    format!("this run was not saved; to start over, run again: {again}")
}

/// Returns the advice for a stream that did not reach its end.
fn stream_again(again: &str) -> String {
    format!("a stream cannot be continued; to send all of it, run again: {again}")
}

/// Checks the place of the receipt before anything is sent.
fn check_receipt(args: &SendArgs) -> Result<(), Failure> {
    let Some(place) = &args.receipt else { return Ok(()) };
    if place.is_dir() {
        return Ok(());
    }
    if place.symlink_metadata().is_ok() {
        let place = wraith_files::shown(place.as_os_str().as_bytes());
        let message = format!("{place} already exists, and a receipt replaces no file");
        return Err(Failure::new(Exit::Usage, message)
            .hint("name another file, or a folder, where each receipt gets its own file"));
    }
    if args.receivers() != Some(1) {
        let message = "--receipt FILE allows only one receiver";
        return Err(Failure::new(Exit::Usage, message).hint(
            "for several receivers, name an existing folder: each receipt gets a file there",
        ));
    }
    let folder = std::path::absolute(place).ok();
    if folder.as_deref().and_then(Path::parent).is_some_and(Path::is_dir) {
        return Ok(());
    }
    let place = wraith_files::shown(place.as_os_str().as_bytes());
    let message = format!("the receipt cannot be written to {place}: there is no such folder");
    Err(Failure::new(Exit::Usage, message))
}

/// Passes the arguments to the library. This is the only place that maps them.
fn builder(
    node: &Node,
    payload: Payload,
    args: &SendArgs,
    narrator: &Arc<SendNarrator>,
) -> Result<wraith::OfferBuilder, Failure> {
    let mut builder = node
        .offer(payload)
        .observer(Arc::clone(narrator) as _)
        .delta(!args.whole_file)
        .sync(!args.no_sync)
        .timeout(args.timeout.map(Duration::from_secs))
        .reconnect(Duration::from_secs(args.reconnect))
        .rate(args.rate.as_ref().map(|rate| rate.bytes))
        .connections(args.connections.connections)
        // The receiver's user runs the same command again.
        .keep_place(true)
        .isolated();
    if args.ticket {
        builder = builder.by_ticket();
    }
    if let Some(text) = &args.code {
        builder = builder.to_invitation(invited_by(text)?);
    }
    if let Some(name) = &args.to {
        builder = builder.to_contact(contacts::find(&node.contacts(), name)?);
    }
    builder = match args.receivers() {
        Some(n) => builder.receivers(n),
        None => builder.any_number(),
    };
    if let Some(seconds) = args.expires {
        builder = builder.expires(Duration::from_secs(seconds));
    }
    if args.new {
        builder = builder.anew();
    }
    if let Some(address) = args.listen {
        builder = builder.bind_to(address);
    }
    if let Some(place) = &args.receipt {
        builder = builder.receipt(place.clone());
    }
    Ok(builder)
}

/// Parses the code of `--code`. Users of other programs give a secret of their own there.
fn invited_by(text: &str) -> Result<wraith::Code, Failure> {
    code::parse(text).map_err(|failure| match wraith::Code::looks_like(text) {
        true => failure,
        false => failure.hint(
            "--code takes the code that wraith receive --code printed; without --code, wraith send makes one",
        ),
    })
}

/// Waits for the end, and shows progress while a receiver is served.
async fn wait_for_end(
    offer: Offer,
    narrator: &SendNarrator,
    signals: &Signals,
    reporter: &Arc<Reporter>,
) -> Result<Arc<OfferSummary>, Error> {
    let mut ticker = None;
    narrator.set_progress_source(offer.progress());
    loop {
        tokio::select! {
            result = offer.finished() => {
                drop(ticker);
                return result.inspect_err(|_| narrator.report_progress());
            }
            is_served = narrator.is_served_other_than(ticker.is_some()) => {
                ticker = is_served.then(|| Ticker::between(Arc::clone(reporter), offer.progress()));
            }
            _ = signals.wait() => {
                let result = offer.cancel().await;
                drop(ticker);
                return result.inspect_err(|_| narrator.report_progress());
            }
        }
    }
}

fn show(offer: &Offer, node: &Node, args: &SendArgs, reporter: &Reporter) {
    if args.code.is_some() {
        return;
    }
    if let Some(ticket) = offer.ticket() {
        let is_here_only = ticket.addresses().iter().all(|address| address.ip().is_loopback());
        let by_relay = ticket.reach().ways().iter().any(|way| way.ip().is_none());
        // A code also brings the address at which its receiver was met.
        if ticket.addresses().is_empty() && !by_relay {
            let what = "only relays may be used, and none accepts this machine yet: nobody can use the ticket";
            reporter.note("", what);
        } else if is_here_only && !by_relay && args.listen.is_none() {
            reporter.note("", "there is no network: the ticket works on this machine only");
        }
    }
    note_left_out(offer.addresses_left_out(), reporter);
    let ticket = offer.ticket().map(ToString::to_string);
    let code = offer.code().map(ToString::to_string);
    if let Some(Cause::NoPlace(missing)) = offer.no_code().and_then(Error::cause) {
        let why = code::nowhere(missing);
        let what = match ticket {
            Some(_) => "so here is a ticket, which needs none",
            None => {
                "so only receivers with the code of an earlier run can come; for others, run again with --ticket"
            }
        };
        reporter.note("", &format!("no meeting place is available for a code ({why}), {what}"));
    }
    let command = code.as_ref().or(ticket.as_ref()).map(|what| format!("wraith receive {what}"));
    let continues_for: Vec<_> = offer.continues_for().iter().map(ToString::to_string).collect();
    let places: Vec<_> = offer.places().iter().map(|place| place.name().to_owned()).collect();
    reporter.event(&Event::Ready {
        ticket: ticket.as_deref(),
        command: command.as_deref(),
        node_id: &node.id().to_string(),
        code: code.as_deref(),
        code_expires_seconds: code.as_ref().map(|_| args.life()),
        waiting_at: &places,
        continues_for: &continues_for,
    });
    if let Some(command) = &command {
        reporter.status("On the other machine, run:\n");
        reporter.print(command);
    }
    if args.qr || args.ticket {
        show_picture(code.as_deref(), ticket.as_deref(), args.qr, reporter);
    }
    for who in offer.continues_for() {
        let who = report::shown(*who);
        reporter.status(format!(
            "\n{who} had the code of an earlier run and can continue without a new one. Not your receiver? Run again with --new."
        ));
    }
    let (receivers, life) = (args.receivers(), args.life());
    if code.is_none() {
        let who = match receivers {
            Some(1) => "the receiver".to_owned(),
            Some(n) => format!("{n} receivers"),
            None => "receivers".to_owned(),
        };
        reporter.status(format!("\nWaiting for {who}. Ctrl-C stops."));
        return;
    }
    code::explain(offer.places(), offer.missing(), &args.meeting, receivers, life, reporter);
    if offer.awaits_long_code() {
        reporter.status("For other networks, a code of six words follows in some seconds.");
    }
    if receivers != Some(1) {
        reporter
            .status("They may come at the same time or one after another; a wrong guess burns the code with the number for all.");
    }
}

/// Reports the addresses of this machine without room in the ticket.
fn note_left_out(left_out: &[SocketAddr], reporter: &Reporter) {
    const SHOWN: usize = 8;
    if left_out.is_empty() {
        return;
    }
    let mut list: Vec<_> = left_out.iter().take(SHOWN).map(|at| at.ip().to_string()).collect();
    if let Some(more @ 1..) = left_out.len().checked_sub(SHOWN) {
        list.push(format!("{more} more"));
    }
    let list = list.join(", ");
    reporter.note("", &format!(
        "this machine has more addresses than a ticket holds; left out: {list}. A receiver that reaches only these needs a code on its local network, or a relay"
    ));
}

/// Shows the code, or else the ticket, as a QR code. `is_asked`: the user requested it, so report
/// it if it does not fit.
fn show_picture(code: Option<&str>, ticket: Option<&str>, is_asked: bool, reporter: &Reporter) {
    let (Some((what, text)), Some((columns, rows))) = (
        code.map(|code| ("code", code)).or(ticket.map(|ticket| ("ticket", ticket))),
        reporter.screen(),
    ) else {
        return;
    };
    match crate::output::qr::picture(text, columns, rows) {
        Some(picture) => reporter.status(format!("\n{picture}(the {what}, as a QR code)")),
        None if is_asked => {
            reporter.warn(format!("this terminal is too small for a QR code of the {what}"))
        }
        None => {}
    }
}

/// Reports the contact to search for, and the places of the search.
fn announce(node: &Node, name: &PeerName, reporter: &Reporter) -> Result<(), Failure> {
    let contact = contacts::find(&node.contacts(), name)?;
    let seen = contact.seen_at.iter().map(ToString::to_string);
    let addresses: Vec<_> = seen.chain(contact.addresses.iter().map(ToString::to_string)).collect();
    let mut places = node.places().clone();
    places.rendezvous = places.rendezvous.or_else(|| contact.rendezvous.clone());
    let looking_at: Vec<_> = places.names().iter().map(|place| place.name().to_owned()).collect();
    reporter.event(&Event::Calling {
        contact: contact.name.as_str(),
        peer: &contact.node_id.to_string(),
        addresses: &addresses,
        looking_at: &looking_at,
    });
    reporter.status(format!("Looking for {}.", contact.name));
    Ok(())
}

/// Returns the advice for a contact that does not admit this node.
fn add_us(node: &Node) -> String {
    let own = node.id();
    format!(
        "is wraith listen running there, and are you a contact there? If not, run there: wraith contact add YOU {own}"
    )
}

/// Converts an error into the failure of the command, with advice.
fn failure(error: &Error, node: &Node, args: &SendArgs) -> Failure {
    let again = again();
    let failure = hints::of(error, Role::Sender, &again);
    match error.cause() {
        Some(Cause::NotMet(unmet)) => {
            match code::parse(args.code.as_deref().unwrap_or_default()) {
                Ok(code) => code::not_met(unmet, &code, (node.places(), &args.meeting), Role::Receiver),
                Err(failure) => failure,
            }
        }
        Some(Cause::CodeSpent(at)) => code::spent(*at, Role::Receiver),
        Some(Cause::CodeBurned(_)) => failure.hint(format!(
            "if your partner mistyped it, run again and share the new code: {again}; if not, an attacker is guessing"
        )),
        Some(Cause::CodeExpired) => {
            let rest = match args.receivers() {
                Some(1) => "",
                _ => ", and -n the number of receivers that still lack the files",
            };
            failure.hint(format!(
                "for a new code, run again: {again}; --expires TIME sets a longer lifetime{rest}"
            ))
        }
        Some(Cause::NoAddress) => {
            failure.hint("connect this machine to a network; wraith doctor tests the connection")
        }
        Some(Cause::NoReceiver) => {
            failure.hint("without --timeout, wraith send waits until a receiver comes")
        }
        Some(Cause::NoContent) => {
            failure.hint("to send the output of a command: COMMAND | wraith send -")
        }
        Some(Cause::SomeLackFiles { .. }) => {
            failure.hint(format!("for the rest, run again: {again}"))
        }
        Some(Cause::ContactNotFound(tried)) if tried.is_empty() => failure.hint(
            "use --rendezvous, turn --lan on, or send once with a code, which saves the address",
        ),
        // The contact's machine answers, so its clock is no reason.
        Some(Cause::NotAdmitted(_)) => failure.hint(add_us(node)),
        // A listener does not answer unknown callers, nor callers with a wrong clock, so the cases
        // cannot be distinguished.
        Some(Cause::ContactNotFound(_)) => {
            failure.hint(format!("{}. {}", add_us(node), report::compare_clocks("90 s")))
        }
        _ => failure,
    }
}
