//! The start of a transfer at the receiver (SPEC §10.2): the receiver sends Hello and Fetch, gets
//! Hello and Offer, asks the user, and sends Accept. Nothing in the target is touched before the
//! user has accepted.

use wraith_files::{CommitOptions, TargetDir, plain};
use wraith_transport::RecvStream;

use super::completed_files::{CompletedFiles, CompletedFilesError};
use super::entries::Entries;
use super::preview::{self, Conflicts, Proposal};
use super::renamed_folders::RenamedFolders;
use super::shown::{self, Shown};
use super::{Decision, ReceiveOptions};
use crate::control::{ControlReader, ControlWriter};
use crate::error::TransferError;
use crate::events::Event;
use crate::limits::{
    DATA_STREAMS_MAX, NAME_BYTES_MAX, NEGOTIATION_TIMEOUT, OFFER_TIMEOUT, PREVIEW_TIME,
    PUSH_BYTES_MAX,
};
use crate::message::{
    Accept, FEATURE_DELTA, FEATURE_DURABILITY, Fetch, Hello, Message, Offer, transfer_id,
};
use crate::rate::Rate;
use crate::role::Role;
use crate::roots::boot_id;
use crate::session::Session;

/// An accepted offer.
pub(super) enum Negotiated {
    Tree(Box<Tree>),
    Stream(Box<Stream>),
}

/// The control stream of an offer.
pub(super) struct Control {
    /// Kept in any case, so that the stream is not stopped.
    pub(super) reader: ControlReader,
    pub(super) writer: ControlWriter,
    pub(super) offer: Offer,
    pub(super) features: Features,
}

/// Features that both sides support.
#[derive(Clone, Copy)]
pub(super) struct Features {
    pub(super) delta: bool,
    /// The sender understands durability in the receipt.
    pub(super) durability: bool,
}

/// A byte stream, before its Accept is sent.
pub(super) struct Stream {
    pub(super) control: Control,
    pub(super) commit_options: CommitOptions,
}

/// An accepted tree.
pub(super) struct Tree {
    pub(super) control: Control,
    pub(super) accepted: Accepted,
    pub(super) target: TargetDir,
    pub(super) completed: CompletedFiles,
    pub(super) streams: Streams,
}

/// The streams of an accepted tree.
pub(super) struct Streams {
    pub(super) manifest: Entries,
    pub(super) data: Vec<RecvStream>,
}

/// Performs Hello, Fetch, Offer and Accept.
pub(super) fn negotiate(
    session: &Session,
    options: &mut ReceiveOptions<'_>,
) -> Result<Negotiated, TransferError> {
    let opened = session.wait(session.connection.open_stream());
    let (send, recv) = opened.map_err(|reason| session.lost(&reason))?;
    let (mut reader, mut writer) = (ControlReader::new(recv), ControlWriter::new(send));
    writer.send(session, &Message::Hello(Hello::ours(Role::Receiver, options.delta)))?;
    writer.send(
        session,
        &Message::Fetch(Fetch {
            secret: options.secret,
            instance: options.instance,
            stream: options.stream.is_output().then_some(true),
            push: wants_push(options).then_some(PUSH_BYTES_MAX),
        }),
    )?;
    let features = match reader.next_within(session, NEGOTIATION_TIMEOUT)? {
        Message::Hello(hello) if hello.role == Role::Sender && hello.version >= 1 => {
            let delta = options.delta && hello.has(FEATURE_DELTA);
            Features { delta, durability: hello.has(FEATURE_DURABILITY) }
        }
        other => return Err(session.protocol(format!("{} instead of Hello", other.name()))),
    };
    let (peer, remote) = (session.connection.peer(), session.connection.remote());
    let suite = session.connection.suite();
    options.progress.connected(session.connection.path());
    options.events.event(Event::Connected { peer, remote, suite, instance: options.instance });
    let offer = match reader.next_within(session, OFFER_TIMEOUT)? {
        Message::Offer(offer) => check_offer(session, options, offer)?,
        other => return Err(session.protocol(format!("{} instead of Offer", other.name()))),
    };
    session.log_offer(&offer);
    options.events.event(Event::Offer(&offer));
    if offer.stream == Some(true) {
        let (Accepted { conflicts, .. }, _) = propose(session, options, &offer)?;
        let sync = options.sync && offer.no_sync != Some(true);
        let commit_options = CommitOptions { on_conflict: conflicts.otherwise, sync };
        let control = Control { reader, writer, offer, features };
        let stream = Stream { control, commit_options };
        return Ok(Negotiated::Stream(Box::new(stream)));
    }
    if options.stream.is_output() {
        return Err(TransferError::NoStream);
    }
    let (accepted, ahead) = propose(session, options, &offer)?;
    // The target is not touched before the user has accepted.
    let target = make_target(session, options)?;
    let completed = open_completed_files(session, options, &target)?;
    options.progress.limited_by(&Rate::of(options.rate));
    options.progress.start(&offer);
    let parallel = wanted_connections(options);
    writer.send(session, &Message::Accept(Accept { have: None, rate: options.rate, parallel }))?;
    session.log_accept(completed.is_resumed());
    options.events.event(Event::Accepted);
    let manifest = match ahead {
        Some(entries) => entries,
        None => Entries::new(accept_stream(session)?, &offer),
    };
    let data: Result<_, _> = (0..offer.data_streams).map(|_| accept_stream(session)).collect();
    let data = data?;
    let control = Control { reader, writer, offer, features };
    let streams = Streams { manifest, data };
    let tree = Tree { control, accepted, target, completed, streams };
    Ok(Negotiated::Tree(Box::new(tree)))
}

/// Returns true if the sender may push small files before they are compared with the disk. False if
/// an earlier connection left some data.
fn wants_push(options: &ReceiveOptions<'_>) -> bool {
    let id = transfer_id(&options.secret);
    options.push && !options.stream.is_output() && !CompletedFiles::is_there(&options.target, &id)
}

/// Returns the number of parallel connections that the receiver allows. `None` with a rate limit,
/// or if it allows no connections.
pub(super) fn wanted_connections(options: &ReceiveOptions<'_>) -> Option<u64> {
    let most = options.parallel.most() as u64;
    (most > 0 && options.rate.is_none()).then_some(most)
}

/// The user's acceptance.
pub(super) struct Accepted {
    pub(super) conflicts: Conflicts,
    /// The accepted part of the offer; `None` accepts everything.
    pub(super) within: Option<Shown>,
}

/// Presents the offer to the user, with a preview if requested. Returns the decision, and the
/// manifest as far as it was read.
fn propose(
    session: &Session,
    options: &mut ReceiveOptions<'_>,
    offer: &Offer,
) -> Result<(Accepted, Option<Entries>), TransferError> {
    let (mut ahead, mut seen) = (None, None);
    if options.preview && offer.stream != Some(true) {
        let stream = session.wait_within(PREVIEW_TIME, session.connection.accept_stream());
        let mut complete = false;
        if let Some(stream) = stream {
            let (_unused, stream) = stream.map_err(|reason| session.lost(&reason))?;
            complete = preview::read_ahead(session, ahead.insert(Entries::new(stream, offer)))?;
        }
        // A missing target is created later. Other errors are reported at that time.
        let target = TargetDir::open(&options.target).ok();
        let key = part_key(session, options);
        let renamed =
            target.as_ref().map(|target| RenamedFolders::look(target, &offer.transfer_id, &key));
        let look =
            |entries| preview::preview(entries, complete, target.as_ref(), &key, renamed.as_ref());
        seen = Some(ahead.as_ref().map(look).unwrap_or_default());
    }
    let connection = &session.connection;
    let (sender, remote) = (connection.peer(), connection.remote());
    let proposal = Proposal { offer, sender, remote, preview: seen.as_ref(), connection };
    let decision = (options.decide)(&proposal);
    session.outcome()?;
    if let Some(reason) = connection.close_reason() {
        // The sender has left, so nothing is created.
        return Err(session.lost(&reason));
    }
    match decision {
        Decision::Accept => {
            let otherwise = options.on_conflict;
            let conflicts = Conflicts { otherwise, ..Conflicts::default() };
            Ok((Accepted { conflicts, within: None }, ahead))
        }
        Decision::AcceptWith(conflicts) => Ok((Accepted { conflicts, within: None }, ahead)),
        Decision::AcceptShown(conflicts, shown) => {
            Ok((Accepted { conflicts, within: Some(shown) }, ahead))
        }
        Decision::Refuse(why) => Err(TransferError::Refused { why }),
        Decision::Postpone => Err(TransferError::Postponed),
    }
}

pub(super) fn make_target(
    session: &Session,
    options: &ReceiveOptions<'_>,
) -> Result<TargetDir, TransferError> {
    let shown = options.target.display();
    std::fs::create_dir_all(&options.target).map_err(|error| {
        session.disk(format!("cannot make the folder {shown}: {}", plain(&error)))
    })?;
    let open = match options.keep_modes {
        true => TargetDir::open_keeping_modes,
        false => TargetDir::open,
    };
    open(&options.target).map_err(|error| session.disk(format!("{shown}: {error}")))
}

fn check_offer(
    session: &Session,
    options: &ReceiveOptions<'_>,
    mut offer: Offer,
) -> Result<Offer, TransferError> {
    let sane = offer.transfer_id == transfer_id(&options.secret)
        && (1..=DATA_STREAMS_MAX).contains(&offer.data_streams)
        && offer.name.len() <= NAME_BYTES_MAX
        && shown::is_sane(&offer);
    if !sane {
        return Err(session.protocol("an invalid Offer"));
    }
    offer.name = crate::error::shown(&offer.name);
    Ok(offer)
}

fn open_completed_files(
    session: &Session,
    options: &ReceiveOptions<'_>,
    target: &TargetDir,
) -> Result<CompletedFiles, TransferError> {
    // Another sender's NodeId yields another key: it cannot claim files that this sender completed.
    let key = part_key(session, options);
    let id = transfer_id(&options.secret);
    CompletedFiles::open(target, &id, &key, &boot_id()).map_err(|error| match error {
        CompletedFilesError::InUse => TransferError::Other {
            what: format!(
                "another wraith is already receiving this into {}. Wait for it, or choose another folder",
                options.target.display()
            ),
        },
        CompletedFilesError::Disk(error) => session.disk(format!("{}: {error}", options.target.display())),
        CompletedFilesError::Io(error) => session.disk(format!("{}: {error}", options.target.display())),
    })
}

/// Derives the key of leftovers in the target from the secret and the sender.
pub(super) fn part_key(session: &Session, options: &ReceiveOptions<'_>) -> [u8; 32] {
    let material = [&options.secret[..], &session.connection.peer().0].concat();
    wraith_crypto::kdf::derive("wraith/1 part key", &material)
}

pub(super) fn accept_stream(session: &Session) -> Result<RecvStream, TransferError> {
    let accepted = session.wait_within(NEGOTIATION_TIMEOUT, session.connection.accept_stream());
    let Some(accepted) = accepted else {
        return Err(session.protocol("it did not open its streams"));
    };
    let (_unused, recv) = accepted.map_err(|reason| session.lost(&reason))?;
    Ok(recv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_pushed_to_a_resuming_or_forwarding_receiver() {
        let folder = tempfile::tempdir().unwrap();
        let identity = wraith_crypto::SecretIdentity::from_seed([1; 32]);
        let mut options = ReceiveOptions::new(folder.path().to_owned(), [7; 16], identity);
        assert!(!wants_push(&options));
        options.push = true;
        assert!(wants_push(&options));
        let id: String = transfer_id(&[7; 16]).iter().map(|byte| format!("{byte:02x}")).collect();
        let state = folder.path().join(format!(".wraith-{id}.state"));
        std::fs::write(&state, b"").unwrap();
        assert!(!wants_push(&options));
        std::fs::remove_file(state).unwrap();
        options.stream = crate::StreamTarget::output(std::io::sink());
        assert!(!wants_push(&options));
    }
}
