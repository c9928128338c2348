//! The loop of the dialling side. It finds the peer and transfers. After a lost connection it finds
//! the peer again, until the transfer is done or cannot succeed.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use wraith_transfer::{Role, TransferError};
use wraith_transport::{Addr, Connection};

use super::dial::{Dialled, Dialler, NotFound};
use super::retry::{RETRY_PAUSE, Window, may_come_back, not_back};
use super::session::Carried;
use super::task::Shared;
use crate::Error;
use crate::event::{Event, FoundAt};
use crate::settings::Patience;

/// One transfer, over as many connections as it takes.
pub(crate) trait Carry: Send {
    type Report: Send;

    /// The role of this side.
    const OWN: Role;

    /// Returns the error for a peer that was reached but sent nothing. `None`: the peer is about to
    /// end; try again.
    fn silent(&self, at: &Dialled) -> Option<Error>;

    /// Waits until it is pointless to find the peer again, for any reason; usually for ever.
    fn given_up(&self) -> impl Future<Output = Error> + Send {
        std::future::pending()
    }

    /// Handles a peer that serves another program with this identity. Waits until another attempt
    /// is worthwhile.
    fn elsewhere(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        async { Err(TransferError::Elsewhere.into()) }
    }

    /// Returns the error if the peer was not found in time.
    fn not_found(&self, why: NotFound) -> Error;

    /// Transfers over one connection. Ends early if the peer has not sent Hello by `deadline`.
    fn carry(
        &mut self,
        connection: Connection,
        is_first: bool,
        deadline: Option<Instant>,
        token: &CancellationToken,
    ) -> impl Future<Output = Carried<Self::Report>> + Send;
}

/// Report of a transfer, and the location of the peer.
#[derive(Debug)]
pub(crate) struct Ended<R> {
    pub report: R,
    pub at: FoundAt,
    pub remote: Addr,
}

/// Runs until everything is confirmed, or the transfer failed for good.
pub(crate) async fn run<C: Carry>(
    mut dialler: Dialler,
    mut carry: C,
    patience: Patience,
    shared: &Shared,
) -> Result<Ended<C::Report>, Error> {
    let token = &shared.token;
    let mut window = Window::new(patience);
    let mut lost: Option<TransferError> = None;
    loop {
        let found = tokio::select! {
            found = dialler.dial(window.deadline) => found,
            error = carry.given_up(), if lost.is_some() => return Err(error),
            () = token.cancelled() => return Err(Error::cancelled(C::OWN)),
        };
        let dialled = match (found, lost.take()) {
            (Ok(dialled), before) => {
                lost = before;
                dialled
            }
            // The loss of an established connection is the more useful error.
            (Err(_), Some(error)) => return Err(not_back(error, patience.reconnect).into()),
            (Err(why), None) => return Err(carry.not_found(why)),
        };
        if lost.is_none() {
            shared.publisher.tell(Event::Met(dialled.at.clone()));
        }
        let deadline = window.deadline.filter(|_| lost.is_none());
        let connection = dialled.connection.clone();
        dialler.ways.attend(
            &connection,
            wraith_transport::Role::Initiator,
            &shared.publisher,
            None,
        );
        let carried = carry.carry(connection, lost.is_none(), deadline, token).await;
        let error = match carried.result {
            Ok(report) => {
                let remote = dialled.connection.remote();
                return Ok(Ended { report, at: dialled.at, remote });
            }
            Err(error) => error,
        };
        shared.meter.leave(&carried.progress);
        if error == TransferError::Elsewhere {
            drop(dialled);
            tokio::select! {
                again = carry.elsewhere() => again?,
                () = token.cancelled() => return Err(Error::cancelled(C::OWN)),
            }
            window.begin(patience);
            pause(token, C::OWN).await?;
            continue;
        }
        if !may_come_back(&error, C::OWN) || token.is_cancelled() {
            return Err(error.into());
        }
        if let (false, None, Some(silent)) = (carried.answered, &lost, carry.silent(&dialled)) {
            return Err(silent);
        }
        if patience.reconnect.is_zero() {
            return Err(error.into());
        }
        if carried.answered {
            let seconds_left = window.lost(carried.progress.bytes(), patience.reconnect);
            shared.publisher.tell(Event::Lost { why: error.to_string(), seconds_left });
            lost = Some(error);
        }
        drop(dialled);
        pause(token, C::OWN).await?;
    }
}

async fn pause(token: &CancellationToken, own: Role) -> Result<(), Error> {
    tokio::select! {
        () = sleep(RETRY_PAUSE) => Ok(()),
        () = token.cancelled() => Err(Error::cancelled(own)),
    }
}

/// Shows only the counters of this connection from now on.
pub(crate) fn watch(shared: &Shared, progress: &Arc<wraith_transfer::Progress>) {
    shared.meter.watch(Arc::clone(progress));
}
