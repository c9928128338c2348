//! The long code of an offer or a service: six words without a number, for the DHT, in addition to the short
//! code. It is made in the background, because it takes a while to see whether the DHT answers.

use tokio::task::{JoinError, JoinHandle};
use wraith_discovery::{Code, CodeAnnouncement, CodeEvent, NoRandomness, PlaceError, PlaceName};

/// State of the long code (see the module docs).
#[derive(Debug, Default)]
pub(crate) enum LongCode {
    /// There is none, or it has ended.
    #[default]
    None,
    /// It is being made.
    Pending(AbortOnDrop<Result<CodeAnnouncement, NoRandomness>>),
    /// It waits for a receiver.
    Ready(Box<CodeAnnouncement>),
}

/// A task that ends with its handle, so that a role that is cancelled at its start leaves no record
/// at the DHT.
#[derive(Debug)]
pub(crate) struct AbortOnDrop<T>(pub JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A change of the long code.
#[derive(Debug)]
pub(crate) enum LongCodeEvent {
    /// It is ready to be shown.
    Made(Code),
    /// It cannot be made, for these reasons.
    NotMade(Vec<(PlaceName, PlaceError)>),
    /// It was used, or has ended.
    Announcement(CodeEvent),
}

impl LongCode {
    /// Returns the next change; waits for ever if there is none. Cancel-safe.
    pub async fn next(&mut self) -> LongCodeEvent {
        loop {
            match self {
                Self::None => std::future::pending().await,
                Self::Pending(making) => {
                    let made = (&mut making.0).await;
                    return match self.settle(made) {
                        Ok(code) => LongCodeEvent::Made(code),
                        Err(why) => LongCodeEvent::NotMade(why),
                    };
                }
                Self::Ready(made) => match made.next_event().await {
                    Some(event) => return LongCodeEvent::Announcement(event),
                    None => *self = Self::None,
                },
            }
        }
    }

    /// Waits until the code is made. Returns why it cannot be made, if that is so.
    pub async fn made(&mut self) -> Vec<(PlaceName, PlaceError)> {
        match self {
            Self::Pending(making) => {
                let made = (&mut making.0).await;
                self.settle(made).err().unwrap_or_default()
            }
            Self::None | Self::Ready(_) => Vec::new(),
        }
    }

    /// Takes the result. A code without any meeting place is useless and not shown.
    fn settle(
        &mut self,
        made: Result<Result<CodeAnnouncement, NoRandomness>, JoinError>,
    ) -> Result<Code, Vec<(PlaceName, PlaceError)>> {
        *self = Self::None;
        let Ok(Ok(made)) = made else { return Err(Vec::new()) };
        if made.places().is_empty() {
            return Err(made.missing().to_vec());
        }
        let code = made.code().clone();
        *self = Self::Ready(Box::new(made));
        Ok(code)
    }

    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(_))
    }

    /// Returns the announcement, once there is one.
    pub fn announcement(&self) -> Option<&CodeAnnouncement> {
        match self {
            Self::Ready(made) => Some(made),
            _ => None,
        }
    }

    pub fn announcement_mut(&mut self) -> Option<&mut CodeAnnouncement> {
        match self {
            Self::Ready(made) => Some(made),
            _ => None,
        }
    }

    /// Withdraws the code.
    pub async fn close(self) {
        match self {
            Self::None => {}
            Self::Pending(making) => drop(making),
            Self::Ready(made) => made.close().await,
        }
    }
}
