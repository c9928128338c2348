//! Receiving: [`Node::fetch`](crate::Node::fetch) with a code or a ticket, into a folder or a writer.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_discovery::contact::Pair;
use wraith_discovery::{Code, Ticket, join};
use wraith_transfer::{
    Conflicts, Decision, OnConflict, Preview, Progress as Counters, ReceiveOptions, ReceiveReport,
    Role, StreamTarget, TransferError,
};
use wraith_transport::{Addr, Connection};

use crate::addresses::nearest_first;
use crate::engine::attempt::{self, Carry, watch};
use crate::engine::consent::{Asked, Consent};
use crate::engine::dial::{Dialled, Dialler, NotFound};
use crate::engine::session::{self, Answered, Carried};
use crate::engine::task::{Shared, Task};
use crate::error::{Cause, Error, ErrorKind};
use crate::event::{Event, Events, FoundAt, Hub, Observer, OfferInfo};
use crate::node::Node;
use crate::progress::ProgressReader;
use crate::report::Received;
use crate::settings::{FIND, FetchSettings, Patience};
use crate::state::SavedTicket;

/// A sender that has not answered for so long where it was is asked for where it is.
const SEARCH_AFTER: Duration = Duration::from_secs(1);

/// What to fetch with.
#[derive(Clone, Debug)]
pub enum Source {
    /// A code that the sender made. It brings the ticket.
    Code(Code),
    /// A ticket.
    Ticket(Ticket),
    /// A ticket that a code of this side brought ([`Invitation::ticket`](crate::Invitation::ticket)).
    Invited(Code, Ticket),
}

impl From<Code> for Source {
    fn from(code: Code) -> Self {
        Self::Code(code)
    }
}

impl From<Ticket> for Source {
    fn from(ticket: Ticket) -> Self {
        Self::Ticket(ticket)
    }
}

impl std::str::FromStr for Source {
    type Err = Error;

    /// A code or a ticket, as somebody typed or pasted it.
    fn from_str(text: &str) -> Result<Self, Error> {
        if Code::looks_like(text) {
            return Ok(Self::Code(text.parse()?));
        }
        text.parse().map(Self::Ticket).map_err(|error| {
            let message = format!("this is neither a code nor a ticket: {error}");
            Error::new(ErrorKind::InvalidInput, message)
        })
    }
}

/// Where to put what is fetched.
#[derive(Clone, Debug)]
pub struct Target {
    folder: PathBuf,
    stream: StreamTarget,
}

impl Target {
    /// Into this folder, which is made when the offer is accepted. A stream becomes a file in it.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), stream: StreamTarget::folder() }
    }

    /// Into this writer: a stream, or a single file. Each piece is verified before it is written.
    pub fn writer(output: impl Write + Send + 'static) -> Self {
        Self { folder: PathBuf::from("."), stream: StreamTarget::output(output) }
    }
}

impl<P: Into<PathBuf>> From<P> for Target {
    fn from(folder: P) -> Self {
        Self::folder(folder)
    }
}

/// How to accept an offer.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct AcceptOptions {
    /// What to do about names that something else has.
    pub conflicts: Conflicts,
}

impl AcceptOptions {
    /// The same for all names.
    pub fn on_conflict(policy: OnConflict) -> Self {
        Self { conflicts: Conflicts { otherwise: policy, ..Conflicts::default() } }
    }
}

impl From<Conflicts> for AcceptOptions {
    fn from(conflicts: Conflicts) -> Self {
        Self { conflicts }
    }
}

/// A fetch that is being prepared.
#[must_use = "nothing is fetched before it is asked for or accepted"]
pub struct FetchBuilder {
    node: Node,
    source: Source,
    target: Target,
    settings: FetchSettings,
    observer: Option<Arc<dyn Observer>>,
}

impl FetchBuilder {
    pub(crate) fn new(node: Node, source: Source, target: Target) -> Self {
        Self { node, source, target, settings: FetchSettings::default(), observer: None }
    }

    /// Asks the sender for no more than this many bytes a second.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.rate = Some(bytes_per_second);
        self
    }

    /// Carries the transfer over this many connections at once (1 to 4), if the sender allows them too. Without it there is
    /// one for every two cores, and only on a path that is faster than one connection.
    pub fn connections(mut self, connections: u8) -> Self {
        self.settings.connections = Some(connections);
        self
    }

    /// Whether, of a file of which an older copy is here, only what differs is fetched. It is, by default.
    pub fn delta(mut self, delta: bool) -> Self {
        self.settings.delta = delta;
        self
    }

    /// Whether the names are looked at before the offer is decided. They are, by default.
    pub fn preview(mut self, preview: bool) -> Self {
        self.settings.preview = preview;
        self
    }

    /// How long the sender is looked for at first: 10 s, unless this says something else.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.patience.first = Some(timeout);
        self
    }

    /// How long a sender that was lost is looked for: 10 min, unless this says something else. Zero: not at all.
    pub fn reconnect(mut self, reconnect: Duration) -> Self {
        self.settings.patience.reconnect = reconnect;
        self
    }

    /// Tells everything that happens to `observer` too.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Fetches whatever is offered, with this policy for names that something else has.
    pub fn accept_all(self, policy: OnConflict) -> Transfer {
        let conflicts = Conflicts { otherwise: policy, ..Conflicts::default() };
        self.start(Consent::given(Decision::AcceptWith(conflicts)))
    }

    /// Finds the sender and hears what it offers. Nothing is written before [`Incoming::accept`]. Dropping the future stops it.
    ///
    /// # Errors
    /// Nobody was found, the code is wrong, or the connection was lost and did not come back.
    pub async fn ask(self) -> Result<Incoming, Error> {
        self.begin().incoming().await
    }

    /// The same in two steps, so that it can be stopped with a word to the sender in between.
    pub fn begin(self) -> Asking {
        let (consent, asked) = Consent::open();
        let transfer = Some(self.start(consent.clone()));
        Asking { consent, asked, transfer }
    }

    fn start(self, consent: Consent) -> Transfer {
        let Self { node, source, target, settings, observer } = self;
        let shared = Shared::new(Hub::new(observer));
        let runtime = node.runtime().clone();
        let work = fetch(node, source, target, settings, consent, shared.clone());
        Transfer(Task::spawn(&runtime, shared, work))
    }
}

impl std::fmt::Debug for FetchBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A sender that is being found and asked what it offers. Dropping it stops it.
#[derive(Debug)]
pub struct Asking {
    consent: Consent,
    asked: UnboundedReceiver<Asked>,
    transfer: Option<Transfer>,
}

impl Asking {
    /// The offer. Cancel-safe.
    ///
    /// # Errors
    /// Nobody was found, the code is wrong, or the connection was lost and did not come back.
    pub async fn incoming(&mut self) -> Result<Incoming, Error> {
        let ended = async {
            match &self.transfer {
                // Without an answer it ends with an error only.
                Some(transfer) => transfer.finished().await.err(),
                None => None,
            }
            .unwrap_or_else(|| Error::cancelled(Role::Receiver))
        };
        tokio::select! {
            Some(asked) = self.asked.recv() => {
                let (consent, gone) = (self.consent.clone(), CancellationToken::new());
                Ok(Incoming::new(asked, consent, self.transfer.take(), gone))
            }
            error = ended => Err(error),
        }
    }

    /// Stops it, and waits until the sender was told.
    pub async fn cancel(mut self) -> Error {
        match self.transfer.take() {
            Some(transfer) => transfer.cancel().await.err(),
            None => None,
        }
        .unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }
}

/// An offer that waits for an answer. Dropped without one, it is put off: the sender goes on waiting, and the same code or
/// ticket fetches another time.
#[must_use = "dropping it puts the offer off"]
#[derive(Debug)]
pub struct Incoming {
    asked: Asked,
    consent: Consent,
    transfer: Option<Transfer>,
    gone: CancellationToken,
    accepted_before: Option<Conflicts>,
}

impl Incoming {
    pub(crate) fn new(
        asked: Asked,
        consent: Consent,
        transfer: Option<Transfer>,
        gone: CancellationToken,
    ) -> Self {
        Self { asked, consent, transfer, gone, accepted_before: None }
    }

    /// The same, of a transfer that a listener has accepted before.
    pub(crate) fn accepted(mut self, before: Option<Conflicts>) -> Self {
        self.accepted_before = before;
        self
    }

    /// How this very transfer was accepted before its connection was lost: nobody needs to be asked again. Of a listener only; a
    /// fetch goes on by itself.
    pub fn accepted_before(&self) -> Option<AcceptOptions> {
        self.accepted_before.clone().map(AcceptOptions::from)
    }

    /// Who offers it.
    pub fn sender(&self) -> NodeId {
        self.asked.sender
    }

    /// From where.
    pub fn remote(&self) -> &Addr {
        &self.asked.remote
    }

    /// What is offered, as the sender says.
    pub fn offer(&self) -> OfferInfo {
        (&self.asked.offer).into()
    }

    /// The same as the transfer engine has it.
    pub fn offer_message(&self) -> &wraith_transfer::Offer {
        &self.asked.offer
    }

    /// The names and what each would meet here, as far as they were looked at; bounded in number, bytes and time.
    pub fn preview(&self) -> Option<&Preview> {
        self.asked.preview.as_ref()
    }

    /// Tells everything that happens to this transfer from now on to `observer` too, if there is none yet.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        if let Some(transfer) = &self.transfer {
            transfer.0.observe(observer);
        }
    }

    /// Whether [`Self::gone`] would return at once.
    pub fn is_gone(&self) -> bool {
        let is_over = |transfer: &Transfer| transfer.0.is_over();
        self.gone.is_cancelled() || self.transfer.as_ref().is_some_and(is_over)
    }

    /// Waits until the question is of no use any more: the transfer has ended, or (of a listener) the sender has gone or must
    /// make room.
    pub async fn gone(&self) {
        let over = async {
            match &self.transfer {
                Some(transfer) => drop(transfer.finished().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.gone.cancelled() => {}
            () = over => {}
        }
    }

    /// Fetches it.
    pub fn accept(mut self, options: impl Into<AcceptOptions>) -> Transfer {
        self.consent.decide(Decision::AcceptWith(options.into().conflicts));
        self.transfer.take().expect("an offer is answered once, and that takes it")
    }

    /// Says no, and why (may be empty), and waits until the sender was told.
    pub async fn refuse(mut self, why: &str) -> Error {
        self.consent.decide(Decision::Refuse(why.to_owned()));
        self.end().await
    }

    /// Says "not now", and waits until the sender was told.
    pub async fn later(mut self) {
        self.consent.decide(Decision::Later);
        drop(self.end().await);
    }

    /// Stops it without an answer, and waits until the sender was told.
    pub async fn cancel(mut self) -> Error {
        let transfer = self.transfer.take().expect("an offer is answered once, and that takes it");
        transfer.cancel().await.err().unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }

    async fn end(&mut self) -> Error {
        let transfer = self.transfer.take().expect("an offer is answered once, and that takes it");
        transfer.finished().await.err().unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            self.consent.decide(Decision::Later);
            transfer.detach();
        }
    }
}

/// A fetch under way. Dropping it stops the transfer; what has arrived stays, and the same fetch another time continues.
#[derive(Debug)]
pub struct Transfer(pub(crate) Task<Received>);

impl Transfer {
    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.0.events()
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressReader {
        self.0.progress()
    }

    /// Waits for the end. Cancel-safe, and may be called any number of times.
    ///
    /// # Errors
    /// Why it failed. Files that could not be transferred are no error here: [`Received::complete`].
    pub async fn finished(&self) -> Result<Arc<Received>, Error> {
        self.0.finished().await
    }

    /// Stops it, and waits until the sender was told and what has arrived is put away.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], unless it had ended in another way before.
    pub async fn cancel(self) -> Result<Arc<Received>, Error> {
        self.0.cancel().await
    }

    /// Asks it to stop and does not wait; [`Self::finished`] does.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Lets it go on without this handle.
    pub fn detach(self) {
        self.0.detach();
    }
}

/// The whole fetch: from the code or ticket to the end.
async fn fetch(
    node: Node,
    source: Source,
    target: Target,
    settings: FetchSettings,
    consent: Consent,
    shared: Shared,
) -> Result<Received, Error> {
    let found = tokio::select! {
        found = resolve(&node, source, settings.patience, &shared.hub) => found,
        () = shared.token.cancelled() => return Err(Error::cancelled(Role::Receiver)),
    };
    let (ticket, saved) = found?;
    let endpoint = node.bind_dialling()?;
    let own = node.identity();
    let dialler = Dialler {
        endpoint: endpoint.clone(),
        peer: ticket.node_id(),
        addresses: ticket.addresses().to_vec(),
        names: Vec::new(),
        pair: Pair::of_transfer(own, ticket.node_id(), ticket.capability().as_bytes()).ok(),
        places: node.places().clone(),
        search_after: SEARCH_AFTER,
    };
    let patience = settings.patience;
    let fetching = Fetching {
        node: node.clone(),
        addresses: dialler.addresses.clone(),
        job: FetchJob {
            secret: *ticket.capability().as_bytes(),
            target,
            settings,
            consent: consent.clone(),
            shared: shared.clone(),
            receiver: None,
            instance: Some(getrandom::u64().unwrap_or_else(|_| std::process::id().into())),
        },
    };
    let result = attempt::run(dialler, fetching, patience, &shared).await;
    endpoint.start_close();
    endpoint.closed().await;
    let result = result.map(|ended| {
        let (report, bytes) = ended.report;
        Received { sender: report.sender, report, bytes, remote: ended.remote }
    });
    let result = match result {
        Err(_) if consent.is_changed() => {
            let message = "the sender came back with another offer than the one that was shown";
            Err(Error::new(ErrorKind::OfferChanged, message))
        }
        result => result,
    };
    let is_over = match &result {
        Ok(received) => received.complete().is_ok(),
        Err(error) => !may_continue(error),
    };
    if let (Some(saved), true) = (saved, is_over) {
        saved.forget();
    }
    if let Ok(received) = &result {
        node.remember_meeting(received.sender, &received.remote);
    }
    result
}

/// The same code may be needed again.
fn may_continue(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Refused
            | ErrorKind::OfferChanged
            | ErrorKind::WrongCode
            | ErrorKind::Verification
            | ErrorKind::UnsafeName
            | ErrorKind::InvalidInput
    )
}

/// The ticket, which a code brings from the sender; and where it is kept until everything is here, because a code works once.
async fn resolve(
    node: &Node,
    source: Source,
    patience: Patience,
    hub: &Hub,
) -> Result<(Ticket, Option<SavedTicket>), Error> {
    let code = match source {
        Source::Ticket(ticket) => return Ok((ticket, None)),
        Source::Invited(code, ticket) => {
            let saved = SavedTicket::of(node.state(), &code)?;
            saved.keep(&ticket)?;
            return Ok((ticket, Some(saved)));
        }
        Source::Code(code) => code,
    };
    let saved = SavedTicket::of(node.state(), &code)?;
    if let Some(ticket) = saved.ticket()? {
        hub.tell(Event::Resumed);
        return Ok((ticket, Some(saved)));
    }
    let deadline = Instant::now() + patience.first.unwrap_or(FIND);
    let met = join(&code, None, node.places(), deadline).await.map_err(|error| {
        let kind = crate::code_end::kind_of(&error);
        Error::because(kind, error.to_string(), Cause::NotMet(error))
    })?;
    hub.tell(Event::Met(FoundAt::Place(met.place.clone())));
    let ticket = Ticket::decode(&met.ticket).map_err(|error| {
        Error::new(ErrorKind::Verification, format!("the sender sent no ticket: {error}"))
    })?;
    saved.keep(&ticket)?;
    Ok((nearest_first(&ticket, met.from), Some(saved)))
}

/// What a fetch needs on every one of its connections; a listener has one for each caller.
pub(crate) struct FetchJob {
    pub secret: [u8; 16],
    pub target: Target,
    pub settings: FetchSettings,
    pub consent: Consent,
    pub shared: Shared,
    pub receiver: Option<u64>,
    /// The same on every connection of one run, another in every run.
    pub instance: Option<u64>,
}

impl FetchJob {
    /// The one builder of options for receiving.
    fn options(
        &self,
        node: &Node,
        is_first: bool,
        answered: &Arc<Answered>,
    ) -> ReceiveOptions<'static> {
        let FetchSettings { rate, connections, delta, preview, .. } = self.settings;
        let folder = self.target.folder.clone();
        let mut options = ReceiveOptions::new(folder, self.secret, node.identity().clone());
        options.stream = self.target.stream.clone();
        options.rate = rate;
        // What was lost may have been a further connection: a path that does not keep them gets along without.
        if is_first {
            options.parallel = node.parallel_to_receive(connections);
        }
        options.instance = self.instance;
        options.preview = preview && self.consent.is_open();
        options.delta = delta;
        options.events = session::events(&self.shared.hub, self.receiver, answered);
        let consent = self.consent.clone();
        options.decide = Box::new(move |proposal| consent.wait(proposal));
        options
    }

    /// Fetches over one connection.
    pub async fn run(
        &self,
        node: &Node,
        connection: Connection,
        is_first: bool,
        progress: Arc<Counters>,
    ) -> Carried<(ReceiveReport, u64)> {
        let answered = Arc::<Answered>::default();
        let mut options = self.options(node, is_first, &answered);
        options.progress = Arc::clone(&progress);
        watch(&self.shared, &progress);
        let result = session::fetch(connection, options, &self.shared.token).await;
        let result = result.map(|report| (report, progress.bytes()));
        Carried { result, answered: answered.get(), progress }
    }
}

struct Fetching {
    node: Node,
    addresses: Vec<std::net::SocketAddr>,
    job: FetchJob,
}

impl Carry for Fetching {
    type Report = (ReceiveReport, u64);

    const OWN: Role = Role::Receiver;

    /// The answer was no, or not now: a sender that has gone is not looked for to tell it.
    async fn given_up(&self) -> Error {
        self.job.consent.decided().await;
        match self.job.consent.decision() {
            Some(Decision::Refuse(why)) => TransferError::Refused { why }.into(),
            Some(Decision::Later) => TransferError::Later.into(),
            _ => std::future::pending().await,
        }
    }

    /// A sender that is about to end, having served somebody else, does this.
    fn silent(&self, _: &Dialled) -> Option<Error> {
        None
    }

    fn not_found(&self, why: NotFound) -> Error {
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        let message =
            format!("the sender cannot be reached: {} ({})", why.error, addresses.join(", "));
        Error::because(ErrorKind::NotFound, message, Cause::Unreachable(self.addresses.clone()))
    }

    async fn carry(
        &mut self,
        connection: Connection,
        is_first: bool,
        _deadline: Option<Instant>,
        _token: &CancellationToken,
    ) -> Carried<Self::Report> {
        self.job.run(&self.node, connection, is_first, Arc::default()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_continued_is_not_what_somebody_refused() {
        let error = |kind| Error::new(kind, "");
        for kind in [ErrorKind::NetworkLost, ErrorKind::Cancelled, ErrorKind::Disk] {
            assert!(may_continue(&error(kind)), "{kind:?}");
        }
        for kind in [ErrorKind::Refused, ErrorKind::Verification, ErrorKind::WrongCode] {
            assert!(!may_continue(&error(kind)), "{kind:?}");
        }
    }

    #[test]
    fn a_code_and_a_ticket_are_told_apart_by_how_they_look() {
        assert!(matches!("7-crater-lemon".parse(), Ok(Source::Code(_))));
        let error = "hello".parse::<Source>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
