//! `wraith receive`: shows the offer of a code or ticket, asks the user, and fetches the files.

mod narrator;

use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::Access;
use wraith::{
    AcceptOptions, Cause, Code, Conflicts, Error, ErrorKind, FetchSummary, Incoming, Node,
    OfferRequest, Role, Source, Transfer,
};
use wraith_command_text::units::Bytes;

use crate::args::ReceiveArgs;
use crate::args::continuing;
use crate::ask::{self, Answers};
use crate::code::{self, SourceChoice};
use crate::contacts::{SaveContact, TransferPeer, after_transfer};
use crate::failure::{Exit, Failure, hints, plain};
use crate::home;
use crate::offer::{self, Answer, Question};
use crate::output::{Event, Reporter, Ticker};
use crate::pipe;
use crate::report;
use crate::signals::Signals;
use narrator::ReceiveNarrator;
use wraith_files::unfinished_files;

/// Fetches the offer of a code or ticket.
pub async fn run(args: &ReceiveArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let started = SystemTime::now();
    let target = pipe::target(args, reporter)?;
    let wanted = code::wanted(args, reporter)?;
    let asks = !args.yes && !args.is_piped();
    if asks && !args.dry_run {
        ask::check_somebody_answers("--yes accepts without asking")?;
    }
    let signals = Signals::for_transfer(reporter)?;
    let state = home::open_for_transfer(reporter)?;
    let is_remembering = state.folder().is_some();
    let qlog = args.qlog.start()?;
    let node = qlog.of(code::node(&args.meeting, state)?).build();
    let node = node.map_err(|error| hints::of(&error, Role::Receiver, ""))?;
    if !args.is_piped() {
        check_target(args)?;
    }
    let (source, code) = match wanted {
        SourceChoice::From(Source::Code(code)) => (Source::Code(code.clone()), Some(code)),
        SourceChoice::From(source) => (source, None),
        SourceChoice::NewCode => {
            let (code, source) = signals.or(invite(&node, args, reporter)).await?;
            (source, Some(code))
        }
    };
    let again = match (&code, args.code) {
        // A new code finds its saved ticket again, just like a typed code.
        (Some(code), true) => continuing::command_with_code(&code.to_string()),
        _ => continuing::command(),
    };
    let narrator = Arc::new(ReceiveNarrator::new(&node, args, reporter));
    let answers = Answers::new(reporter);
    let (node, signals) = (&node, &signals);
    let run = ReceiveRun { args, reporter, node, signals, answers: &answers, narrator: &narrator };
    let received = loop {
        let request = run.builder(source.clone(), target.clone(), !asks).request_offer();
        match run.run(request).await {
            // The user accepted another offer, so ask again.
            Err(error) if asks && error.kind() == ErrorKind::OfferChanged => {
                let message =
                    "The sender came back with an offer that differs from the accepted one.";
                reporter.note("", message);
            }
            ended => break ended,
        }
    };
    // A code works once. Unless its ticket was saved, the same command cannot resume.
    let is_spent = || code.is_some() && !(is_remembering && narrator.is_stored());
    let received = match received {
        Ok(Outcome::Received(received)) => received,
        Ok(Outcome::DryRun) => return Ok(()),
        Ok(Outcome::Unanswered) => {
            let message =
                "the question got no answer; nothing was written, and the sender is still waiting";
            let failure = Failure::new(Exit::Usage, message);
            return Err(match is_spent() {
                true => failure.hint(code::new_code(Role::Sender)),
                false => failure.hint(format!("--yes accepts without asking; run again: {again}")),
            });
        }
        Err(error) => {
            if narrator.is_accepted() && !args.is_piped() {
                report_unfinished(&args.out, started, reporter);
            }
            let failure = match signals.caught() {
                Some(exit) => {
                    Failure::new(exit, "stopped").hint(format!("to continue, run again: {again}"))
                }
                None => failure(&error, node, args, code.as_ref(), &again),
            };
            return Err(match error.is_resumable() {
                true if narrator.is_endless() && narrator.is_accepted() => failure.hint(
                    "a stream cannot be continued; run wraith send - there again, and use its new code or ticket",
                ),
                true if is_spent() => failure.hint(code::new_code(Role::Sender)),
                true if args.is_piped() => {
                    failure.hint(format!("to write everything from the start, run again: {again}"))
                }
                _ => failure,
            });
        }
    };
    narrator.received(&received);
    let result = received.complete().map_err(|error| hints::of(&error, Role::Receiver, &again));
    result?;
    let (node_id, remote) = (received.sender, received.remote.clone());
    let other =
        TransferPeer { node_id, role: Role::Sender, last_seen: node.last_seen(node_id, &remote) };
    let keep = SaveContact::of(
        args.save_as.as_ref(),
        asks && !args.contacts.no_contacts && is_remembering,
    );
    after_transfer(&other, keep, &answers, signals, reporter).await
}

/// Makes a code and waits until a sender with the right words has sent its ticket.
async fn invite(
    node: &Node,
    args: &ReceiveArgs,
    reporter: &Reporter,
) -> Result<(Code, Source), Failure> {
    let failed = |error: Error| {
        let failure = hints::of(&error, Role::Receiver, "");
        match error.cause() {
            Some(Cause::NoPlace(missing)) => {
                let why = code::nowhere(missing);
                let message = format!("no meeting place is available for a code ({why})");
                Failure { message, ..failure }
                    .hint("let the sender start, with wraith send --ticket")
            }
            Some(Cause::CodeBurned(_) | Cause::CodeExpired) => {
                failure.hint("run wraith receive --code again and give the sender the new code")
            }
            _ => failure,
        }
    };
    let life = Duration::from_secs(args.expires);
    let invitation = node.invite().expires(life).start().await.map_err(failed)?;
    let code = invitation.code().clone();
    let text = code.to_string();
    let command = format!("wraith send --code {text}");
    let places: Vec<_> = invitation.places().iter().map(|place| place.name().to_owned()).collect();
    reporter.event(&Event::Waiting {
        code: &text,
        command: &command,
        waiting_at: &places,
        code_expires_seconds: args.expires,
    });
    reporter.status("On the other machine, run this with the files after it:\n");
    reporter.print(&command);
    let (places, missing) = (invitation.places(), invitation.missing());
    code::explain(places, missing, &args.meeting, Some(1), args.expires, reporter);
    // If the code could not be printed, no sender can come.
    reporter.unwritten()?;
    Ok((code, invitation.ticket().await.map_err(failed)?))
}

/// The result of an offer without a failure.
enum Outcome {
    /// The transfer is complete.
    Received(Arc<FetchSummary>),
    /// The dry run is done.
    DryRun,
    /// The question got no answer.
    Unanswered,
}

/// The decision about an offer.
enum Verdict {
    Yes(AcceptOptions),
    No,
    /// Not now; the sender keeps waiting.
    Postpone(Outcome),
}

/// One run of `wraith receive`.
struct ReceiveRun<'a> {
    args: &'a ReceiveArgs,
    reporter: &'a Arc<Reporter>,
    node: &'a Node,
    signals: &'a Signals,
    answers: &'a Answers,
    narrator: &'a Arc<ReceiveNarrator>,
}

impl ReceiveRun<'_> {
    /// Passes the arguments to the library. This is the only place that maps them.
    fn builder(
        &self,
        source: Source,
        target: wraith::Target,
        is_decided: bool,
    ) -> wraith::FetchBuilder {
        let args = self.args;
        self.node
            .fetch(source, target)
            .observer(Arc::clone(self.narrator) as _)
            .preview(!is_decided)
            .delta(!args.whole_file)
            .keep_modes(args.keep_modes)
            .sync(!args.no_sync)
            .timeout(args.timeout.map(Duration::from_secs))
            .reconnect(Duration::from_secs(args.reconnect))
            .rate(args.rate.as_ref().map(|rate| rate.bytes))
            .connections(args.connections.connections)
    }

    async fn run(&self, mut request: OfferRequest) -> Result<Outcome, Error> {
        let incoming = tokio::select! {
            incoming = request.incoming() => incoming?,
            _ = self.signals.wait() => return Err(request.cancel().await),
        };
        match self.decide(&incoming).await {
            Verdict::Yes(options) => {
                self.transfer(incoming.accept(options)).await.map(Outcome::Received)
            }
            _ if self.signals.caught().is_some() => Err(incoming.cancel().await),
            Verdict::No => Err(incoming.refuse("").await),
            Verdict::Postpone(outcome) => {
                incoming.postpone().await;
                Ok(outcome)
            }
        }
    }

    /// Decides about the offer, by the command line or the user.
    async fn decide(&self, incoming: &Incoming) -> Verdict {
        let (args, reporter) = (self.args, self.reporter);
        let proposal = offer::proposal(incoming);
        let policy = args.on_conflict.policy();
        let otherwise = policy.unwrap_or_default();
        if args.dry_run {
            reporter.status(offer::text(&proposal, &args.out, true));
            let conflicts = Conflicts { otherwise, ..Conflicts::default() };
            offer::dry_run(&proposal, &conflicts, reporter);
            return Verdict::Postpone(Outcome::DryRun);
        }
        if args.yes || args.is_piped() {
            reporter.status(offer::text(&proposal, &args.out, true));
            return Verdict::Yes(AcceptOptions::on_conflict(otherwise).any_offer());
        }
        let question = Question {
            proposal: &proposal,
            out: &args.out,
            reporter,
            conflicts: policy,
            terminal: std::io::stdin().is_terminal(),
            answers: self.answers,
        };
        let answer = tokio::select! {
            answer = question.ask() => answer,
            _ = self.signals.wait() => return Verdict::No,
            () = incoming.withdrawn() => return Verdict::No,
        };
        match answer {
            Answer::Yes(conflicts) => Verdict::Yes(AcceptOptions::from(conflicts).ask_again()),
            Answer::No => Verdict::No,
            Answer::None => Verdict::Postpone(Outcome::Unanswered),
        }
    }

    async fn transfer(&self, transfer: Transfer) -> Result<Arc<FetchSummary>, Error> {
        let ticker = Ticker::start(Arc::clone(self.reporter), transfer.progress());
        let result = tokio::select! {
            result = transfer.finished() => result,
            _ = self.signals.wait() => transfer.cancel().await,
        };
        drop(ticker);
        result
    }
}

/// Converts an error into the failure of the command, with advice.
fn failure(
    error: &Error,
    node: &Node,
    args: &ReceiveArgs,
    code: Option<&Code>,
    again: &str,
) -> Failure {
    let failure = hints::of(error, Role::Receiver, again);
    match (error.cause(), code) {
        (Some(Cause::NotMet(unmet)), Some(code)) => {
            code::not_met(unmet, code, (node.places(), &args.meeting), Role::Sender)
        }
        (Some(Cause::NoCommonSuite), _) => failure.hint(format!(
            "agree on one --policy with the sender, then run again: {again}; the code or ticket is still valid"
        )),
        (Some(Cause::CodeSpent(at)), _) => code::spent(*at, Role::Sender),
        (Some(Cause::Unreachable(_)), _) => {
            failure.hint(format!(
                "is wraith send still running there, with this ticket? Can this machine reach it over UDP (wraith doctor)? If the network drops UDP or large packets, run there: wraith send --relay HOST. If that send was continued after a restart: {}",
                report::compare_clocks("90 s")
            ))
        }
        _ => failure,
    }
}

/// Names the unfinished files in the folder that were written since `started`, and their disk space.
fn report_unfinished(folder: &Path, started: SystemTime, reporter: &Reporter) {
    let files = unfinished_files(folder, started);
    let Some(first) = files.first() else { return };
    let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    let path = wraith_files::shown(first.path.as_os_str().as_bytes());
    let more = match files.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let bytes = Bytes(bytes);
    reporter.note(&path, &format!("unfinished files stay, {bytes} on the disk: {path}{more}"));
}

/// Checks that the target can be created or written to, before a code is used up. The target is
/// created when the offer is accepted.
fn check_target(args: &ReceiveArgs) -> Result<(), Failure> {
    let out = args.out.display();
    let cannot = |why: &str| Failure::new(Exit::Disk, format!("cannot write into {out}: {why}"));
    let Some(there) = offer::existing_ancestor(&args.out) else {
        return Err(cannot("there is no such folder"));
    };
    if !there.is_dir() {
        return Err(cannot(&format!("{} is not a folder", there.display())));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(there, access).map_err(|errno| cannot(&plain(&errno.into())))
}
