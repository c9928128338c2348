//! The loop of the dialling side. It finds the peer and transfers. After a lost connection it finds
//! the peer again, until the transfer is done or cannot succeed.

use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use wraith_discovery::{SuspensionMark, TimeLimit};
use wraith_transfer::{Role, TransferError};
use wraith_transport::{Addr, Connection};

use super::dial::{Dialled, Dialler, NotFound};
use super::retry::{ReconnectWindow, reconnect_error};
use super::session::SessionResult;
use super::task::TaskState;
use crate::Error;
use crate::event::{Event, FoundAt};
use crate::settings::{RETRY_PAUSE, TransferOptions};

/// One transfer, over as many connections as it takes.
pub(crate) trait ResumableTransfer: Send {
    type Report: Send;

    /// The role of this side.
    const ROLE: Role;

    /// Returns the error for a peer that was reached but sent nothing. `None`: the peer is about to
    /// end; try again.
    fn silent_peer_error(&self, at: &Dialled) -> Option<Error>;

    /// Waits until it is pointless to find the peer again, for any reason; usually for ever.
    fn abandoned(&self) -> impl Future<Output = Error> + Send {
        std::future::pending()
    }

    /// Handles a peer that serves another program with this identity. Waits until another attempt
    /// is worthwhile.
    fn retry_elsewhere(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        async { Err(TransferError::Elsewhere.into()) }
    }

    /// Returns the error if the peer was not found in time.
    fn not_found_error(&self, why: NotFound) -> Error;

    /// Transfers over one connection. Ends early if the peer has not sent Hello within `limit`.
    fn transfer_once(
        &mut self,
        connection: Connection,
        is_first: bool,
        limit: Option<TimeLimit>,
        token: &CancellationToken,
    ) -> impl Future<Output = SessionResult<Self::Report>> + Send;
}

/// Report of a transfer, and the location of the peer.
#[derive(Debug)]
pub(crate) struct Completed<R> {
    pub report: R,
    pub at: FoundAt,
    pub remote: Addr,
}

/// Runs until everything is confirmed, or the transfer failed for good.
pub(crate) async fn run<C: ResumableTransfer>(
    mut dialler: Dialler,
    mut transfer: C,
    options: TransferOptions,
    shared: &TaskState,
) -> Result<Completed<C::Report>, Error> {
    let token = &shared.token;
    let mut window = ReconnectWindow::new(options.timeout);
    let mut lost: Option<TransferError> = None;
    loop {
        let begin = SuspensionMark::now();
        let found = tokio::select! {
            found = dialler.dial(window.limit.as_mut()) => found,
            error = transfer.abandoned(), if lost.is_some() => return Err(error),
            () = token.cancelled() => return Err(Error::cancelled(C::ROLE)),
        };
        let dialled = match (found, lost.take()) {
            (Ok(dialled), before) => {
                lost = before;
                dialled
            }
            // The loss of an established connection is the more useful error.
            (Err(_), Some(error)) => return Err(reconnect_error(error, options.reconnect)),
            (Err(why), None) => return Err(transfer.not_found_error(why)),
        };
        if lost.is_none() {
            shared.publisher.publish(Event::PeerFound(dialled.at.clone()));
        }
        let limit = window.limit.clone().filter(|_| lost.is_none());
        let connection = dialled.connection.clone();
        dialler.paths.manage_path(
            &connection,
            wraith_transport::Role::Initiator,
            &shared.publisher,
            None,
        );
        let session = transfer.transfer_once(connection, lost.is_none(), limit, token).await;
        let error = match session.result {
            Ok(report) => {
                let remote = dialled.connection.remote();
                return Ok(Completed { report, at: dialled.at, remote });
            }
            Err(error) => error,
        };
        shared.meter.remove(&session.progress);
        if error == TransferError::Elsewhere {
            drop(dialled);
            tokio::select! {
                again = transfer.retry_elsewhere() => again?,
                () = token.cancelled() => return Err(Error::cancelled(C::ROLE)),
            }
            window.restart(options.timeout);
            pause(token, C::ROLE).await?;
            continue;
        }
        let TransferError::NetworkLost { why } = &error else { return Err(error.into()) };
        if token.is_cancelled() {
            return Err(error.into());
        }
        if let (false, None, Some(silent)) =
            (session.answered, &lost, transfer.silent_peer_error(&dialled))
            && !begin.was_suspended()
        {
            return Err(silent);
        }
        if options.reconnect.is_zero() {
            return Err(error.into());
        }
        if session.answered {
            let seconds_left = window.lost(session.progress.bytes(), options.reconnect);
            let why = why.clone();
            shared.publisher.publish(Event::ConnectionLost { why, seconds_left });
            lost = Some(error);
        }
        drop(dialled);
        pause(token, C::ROLE).await?;
    }
}

async fn pause(token: &CancellationToken, own: Role) -> Result<(), Error> {
    tokio::select! {
        () = sleep(RETRY_PAUSE) => Ok(()),
        () = token.cancelled() => Err(Error::cancelled(own)),
    }
}

/// Shows only the counters of this connection from now on.
pub(crate) fn show_only(shared: &TaskState, progress: &Arc<wraith_transfer::Progress>) {
    shared.meter.replace(Arc::clone(progress));
}
