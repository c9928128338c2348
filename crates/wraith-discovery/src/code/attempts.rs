//! The attempts of a joiner at all places: their race, and the result of the whole search.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;

use thiserror::Error;
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use crate::contact::PunchRequest;
use crate::place::{BoxFuture, PlaceError, PlaceName, Refusal};

/// A successful meeting of joiner and creator.
#[derive(Debug)]
pub struct JoinSuccess {
    /// The creator's ticket for the joiner's identity; empty if the joiner had the ticket.
    pub ticket: Zeroizing<Vec<u8>>,
    /// The creator's claimed identity if the joiner had the ticket, which is made for this
    /// identity.
    pub creator: Option<NodeId>,
    /// The meeting place.
    pub place: PlaceName,
    /// Source address of the creator's messages, if they came directly.
    pub from: Option<SocketAddr>,
    /// The creator's addresses and a shared secret, if they met through stored records.
    pub punch_request: Option<PunchRequest>,
}

/// A failed search.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct JoinError {
    /// Most informative reason of all places.
    pub why: JoinErrorKind,
    /// Whether the guess was sent. If so, its recipient had one try at the words, and the code must
    /// not be used again.
    pub is_spent: bool,
    /// Places that could not be searched, with reasons.
    pub unusable: Vec<(PlaceName, PlaceError)>,
}

/// Reason of a failed search, least informative first. The greatest of all places' reasons is
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum JoinErrorKind {
    /// No place is configured.
    #[error("no meeting place is configured")]
    NoPlace,
    /// No place is usable.
    #[error("no meeting place is usable")]
    Unreachable,
    /// No creator waits at this nameplate.
    #[error("no peer waits with this number")]
    Nobody,
    /// The creator at this nameplate has another kind of code: another direction or number of
    /// words.
    #[error("another kind of code waits there")]
    OtherKind,
    /// The place is full, or it rate-limits this side.
    #[error("there is no room")]
    Busy,
    /// The answer is not that of a code's creator. No guess was made.
    #[error("the answer does not come from the creator of this code")]
    InvalidAnswer,
    /// A peer took the guess and stopped answering.
    #[error("the peer stopped answering")]
    Silent,
    /// Another joiner used the code.
    #[error("another peer has used the code")]
    Used,
    /// The code has expired.
    #[error("the code has expired")]
    Expired,
    /// An earlier wrong guess burned the code.
    #[error("the code was burned by an earlier wrong guess")]
    Burned,
    /// The guess was wrong, or the answering peer does not have the words.
    #[error("the words are wrong, and the code is burned")]
    Wrong,
    /// The guess was held back because the code was spent before.
    #[error("this machine already tried the code")]
    Spent,
}

impl From<Refusal> for JoinErrorKind {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Used => Self::Used,
            Refusal::Burned => Self::Burned,
            Refusal::Expired => Self::Expired,
            Refusal::Wrong => Self::Wrong,
            Refusal::Unfit => Self::OtherKind,
            Refusal::Unknown => Self::Nobody,
        }
    }
}

/// Failure at one place.
#[derive(Clone, Debug)]
pub(super) struct PlaceFailure {
    why: JoinErrorKind,
    /// Error of the place, if it could not be searched.
    error: Option<PlaceError>,
}

impl From<JoinErrorKind> for PlaceFailure {
    fn from(why: JoinErrorKind) -> Self {
        Self { why, error: None }
    }
}

impl From<PlaceError> for PlaceFailure {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Nobody => JoinErrorKind::Nobody.into(),
            PlaceError::TooFast | PlaceError::Full => JoinErrorKind::Busy.into(),
            PlaceError::Closed(why) => JoinErrorKind::from(why).into(),
            error => Self { why: JoinErrorKind::Unreachable, error: Some(error) },
        }
    }
}

impl PlaceFailure {
    /// Reports whether a retry may succeed: a server may recover, and a creator may start to wait.
    pub(super) fn is_retryable(&self) -> bool {
        let may = matches!(
            self.why,
            JoinErrorKind::Unreachable
                | JoinErrorKind::Nobody
                | JoinErrorKind::OtherKind
                | JoinErrorKind::Busy
        );
        may && !matches!(self.error, Some(PlaceError::Unusable(_)))
    }
}

/// The search at one place.
pub(super) type Attempt = (PlaceName, BoxFuture<'static, Result<JoinSuccess, PlaceFailure>>);

/// Returns the first success, or the combined reasons of all failures.
pub(super) async fn first_success(mut attempts: Vec<Attempt>) -> Result<JoinSuccess, JoinError> {
    let mut failed =
        JoinError { why: JoinErrorKind::NoPlace, is_spent: false, unusable: Vec::new() };
    while let Some((place, ended)) = next_ended(&mut attempts).await {
        match ended {
            Ok(success) => {
                debug!(place = place.name(), "code exchange completed");
                return Ok(success);
            }
            Err(PlaceFailure { why, error }) => {
                debug!(place = place.name(), %why, "code exchange failed");
                failed.why = failed.why.max(why);
                failed.unusable.extend(error.map(|error| (place, error)));
            }
        }
    }
    Err(failed)
}

/// Removes and returns the first attempt that ends, or `None` if there are no attempts.
async fn next_ended(
    attempts: &mut Vec<Attempt>,
) -> Option<(PlaceName, Result<JoinSuccess, PlaceFailure>)> {
    poll_fn(|cx| {
        for index in 0..attempts.len() {
            if let Poll::Ready(ended) = attempts[index].1.as_mut().poll(cx) {
                let (place, _) = attempts.swap_remove(index);
                return Poll::Ready(Some((place, ended)));
            }
        }
        if attempts.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}
