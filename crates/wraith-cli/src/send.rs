//! `wraith send`: the code or ticket first, everything else behind it.
//!
//! Before it is on the screen nothing is read but the names on the command line, so it takes the same time for
//! a terabyte as for a byte. Walking the tree for the offer happens while the receiver is awaited.

use std::fs::FileType;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wraith::state::{StateDir, UnfinishedSend};
use wraith_discovery::{Ticket, Waiting};
use wraith_files::{Walk, shown};
use wraith_transfer::Role;
use wraith_transport::Endpoint;

use crate::addresses;
use crate::args::{SendArgs, continuing};
use crate::ask::Answers;
use crate::call;
use crate::code;
use crate::contacts::{Keep, Other, after_transfer};
use crate::endpoint;
use crate::failure::{Exit, Failure, plain};
use crate::home;
use crate::interrupt::Interrupt;
use crate::lanes;
use crate::made;
use crate::output::qr;
use crate::output::{Event, Reporter};
use crate::pipe;
use crate::regain::Answering;
use crate::serve::Serving;

/// Offers the paths until one receiver has confirmed that it has everything.
pub fn run(args: &SendArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    if args.code.is_some() && args.receivers > 1 {
        let message = "a code that a receiver made is for that receiver only";
        return Err(Failure::new(Exit::Usage, message)
            .hint("for several, let wraith send make the code: leave out --code"));
    }
    if let Some(name) = &args.to {
        return call::run(args, name, reporter);
    }
    let stream = pipe::source(args, reporter)?;
    let interrupt = Interrupt::for_transfer(reporter)?;
    let paths: &[PathBuf] = if stream.is_some() { &[] } else { &args.paths };
    let paths = sources(paths)?;
    let home = home::open()?;
    let identity = home.identity()?;
    let (node_id, seed) = (identity.node_id(), *identity.seed());
    let mut pending = match &stream {
        // What was read cannot be read again, so there is nothing to continue.
        Some(_) => UnfinishedSend::unremembered()?,
        None => UnfinishedSend::open(&home, &paths)?,
    };
    let endpoint = listen(args, &pending, &home)?;
    pending.remember(endpoint.local_addr().port())?;
    let reachable = addresses::reachable(endpoint.local_addr());
    let ticket = Ticket::new(node_id, pending.capability().clone(), reachable);
    if let Some(code) = &args.code {
        made::give(code, args, &ticket, reporter, &interrupt)?;
    }
    let lanes = lanes::to_send(args.lanes.lanes, endpoint.local_addr().ip(), seed, args.congestion);
    let places = code::places_of(&args.meeting);
    let mut answering =
        Answering::new(seed, pending.capability().clone(), places, endpoint.local_addr());
    pending.receivers().into_iter().rev().for_each(|receiver| answering.lost(receiver));
    let link = (&endpoint, lanes);
    let mut serving =
        Serving::new(args, (paths, stream), &pending, answering, link, reporter, &interrupt);
    let mut waiting = code::offer(args, &ticket, reporter, serving.give_up())?;
    if args.code.is_none() {
        show(&ticket, waiting.as_ref(), args, reporter);
        // Nobody can come with what nobody has seen.
        reporter.unwritten()?;
    }
    if let Some(waiting) = &mut waiting {
        waiting.begin().map_err(|error| {
            Failure::new(Exit::Other, format!("cannot wait for the receiver: {}", plain(&error)))
        })?;
    }

    let result = serving.run();
    let partner = serving.partner();
    drop(serving);
    endpoint.close();
    match interrupt.caught() {
        Some(exit) if result.is_err() => return Err(stopped(exit)),
        // With --keep the same command goes on with the same ticket another day.
        _ if args.keep => return result,
        _ => result?,
    }
    pending.forget();
    let Some((node_id, remote)) = partner else { return Ok(()) };
    let other = Other::seen(node_id, Role::Receiver, remote, &args.meeting);
    let keep = Keep::of(args.save_as.as_ref(), args.receivers() == Some(1) && !args.is_piped());
    after_transfer(&other, keep, &Answers::new(reporter), &interrupt, reporter)
}

/// The port of last time, if this send was interrupted, so that its ticket stays good.
fn listen(args: &SendArgs, pending: &UnfinishedSend, home: &StateDir) -> Result<Endpoint, Failure> {
    let address = args.listen.unwrap_or(endpoint::ANY_ADDRESS);
    if let (0, Some(port)) = (address.port(), pending.port()) {
        let before = SocketAddr::new(address.ip(), port);
        if let Ok(endpoint) = endpoint::bind_to_send(before, home.identity()?, args.congestion) {
            return Ok(endpoint);
        }
        // Somebody else has the port now; then the ticket changes.
    }
    endpoint::bind_to_send(address, home.identity()?, args.congestion).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot listen on {address}: {}", plain(&error)))
            .hint("choose another address or port with --listen")
    })
}

fn show(ticket: &Ticket, waiting: Option<&Waiting>, args: &SendArgs, reporter: &Reporter) {
    let text = ticket.to_string();
    let code = waiting.map(|waiting| waiting.code().to_string());
    let command = format!("wraith receive {}", code.as_ref().unwrap_or(&text));
    let node_id = ticket.node_id().to_string();
    let places = waiting.map(code::places).unwrap_or_default();
    reporter.event(&Event::Ready {
        ticket: &text,
        command: &command,
        node_id: &node_id,
        code: code.as_deref(),
        code_expires_seconds: waiting.map(|_| args.life()),
        waiting_at: &places,
    });
    reporter.say("On the other machine, run:\n");
    reporter.answer(&command);
    if let Some((columns, rows)) = reporter.screen()
        && let Some(picture) = qr::picture(&text, columns, rows)
    {
        reporter.say(format!("\n{picture}(the ticket, for a camera)"));
    }
    match waiting {
        Some(waiting) => code::explain(waiting, args, reporter),
        None => reporter.say("\nWaiting for the receiver. Ctrl-C stops."),
    }
}

/// The paths to send, each checked by itself and beside the others, so that what cannot be offered is told before there is a
/// code. Nothing below them is looked at.
pub fn sources(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let paths = paths.iter().map(|path| canonical(path)).collect::<Result<Vec<_>, _>>()?;
    Walk::new(&paths).map_err(|error| Failure::new(Exit::Usage, format!("cannot send {error}")))?;
    Ok(paths)
}

/// The absolute path with links resolved, except in the last component: a link is sent as a link.
fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    let missing = |error: std::io::Error| {
        let kind = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if kind { Exit::Usage } else { Exit::Disk };
        Failure::new(
            exit,
            format!("cannot send {}: {}", shown(path.as_os_str().as_bytes()), plain(&error)),
        )
    };
    path.symlink_metadata().map_err(missing)?;
    if path.metadata().is_ok_and(|there| is_special(there.file_type())) {
        let shown = wraith_files::shown(path.as_os_str().as_bytes());
        let message =
            format!("cannot send {shown}: it is a pipe, socket or device, not a file or folder");
        return Err(Failure::new(Exit::Usage, message)
            .hint("what a command gives is sent with: COMMAND | wraith send -"));
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            Ok(parent.canonicalize().map_err(missing)?.join(name))
        }
        // `.`, `..`, `/` and `x/..` have no name of their own until they are resolved.
        _ => path.canonicalize().map_err(missing),
    }
}

/// It has no content of its own.
fn is_special(kind: FileType) -> bool {
    !(kind.is_file() || kind.is_dir() || kind.is_symlink())
}

fn stopped(exit: Exit) -> Failure {
    let command = continuing::command();
    Failure::new(exit, "stopped").hint(format!("to continue, run again: {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_named_by_itself_and_not_by_where_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("nowhere", real.join("link")).unwrap();
        assert_eq!(canonical(&real.join("link")).unwrap(), real.join("link"));
        assert_eq!(canonical(&real.join("x/..").join("link")).unwrap_err().exit, Exit::Usage);
        assert_eq!(canonical(&real.join(".")).unwrap(), real);
    }
}
