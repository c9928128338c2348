//! Results of a search, which meeting places and record stores report alike.

use super::responder::PunchSecret;
use crate::place::{PlaceError, PlaceName};
use crate::reach::Reach;

/// Result at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchEvent {
    /// The contact's addresses. If the contact has the caller's addresses as well, the secret
    /// authenticates the packets of both sides.
    Found(PlaceName, Reach, Option<PunchSecret>),
    /// The place is not usable at present.
    PlaceFailed(PlaceName, PlaceError),
}
