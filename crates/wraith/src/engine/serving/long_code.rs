//! The long code of an offer, beside its short one: made in the background, because whether the DHT answers shows only after a while.

use tokio::task::{JoinError, JoinHandle};
use wraith_discovery::{Code, CodeAnnouncement, CodeEvent, NoRandomness};

/// See the module.
#[derive(Debug, Default)]
pub(crate) enum LongCode {
    /// There is none, or it has ended.
    #[default]
    None,
    /// It is being made.
    Coming(JoinHandle<Result<CodeAnnouncement, NoRandomness>>),
    /// It waits.
    Here(Box<CodeAnnouncement>),
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum LongCodeNews {
    /// It can be said.
    Made(Code),
    /// It is used, or has ended.
    Event(CodeEvent),
}

impl LongCode {
    /// What happens next; waits for ever if nothing does. Cancel-safe.
    pub async fn next(&mut self) -> LongCodeNews {
        loop {
            match self {
                Self::None => std::future::pending().await,
                Self::Coming(making) => {
                    let made = making.await;
                    *self = Self::of(made);
                    if let Self::Here(made) = self {
                        return LongCodeNews::Made(made.code().clone());
                    }
                }
                Self::Here(made) => match made.next_event().await {
                    Some(event) => return LongCodeNews::Event(event),
                    None => *self = Self::None,
                },
            }
        }
    }

    /// Waits until it is made, or shows to be none.
    pub async fn made(self) -> Self {
        match self {
            Self::Coming(making) => Self::of(making.await),
            other => other,
        }
    }

    fn of(made: Result<Result<CodeAnnouncement, NoRandomness>, JoinError>) -> Self {
        match made {
            // Where nobody could be met it is not said.
            Ok(Ok(made)) if !made.places().is_empty() => Self::Here(Box::new(made)),
            _ => Self::None,
        }
    }

    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub const fn is_coming(&self) -> bool {
        matches!(self, Self::Coming(_))
    }

    /// The announcement, once there is one.
    pub fn here(&self) -> Option<&CodeAnnouncement> {
        match self {
            Self::Here(made) => Some(made),
            _ => None,
        }
    }

    /// Withdraws it.
    pub async fn close(self) {
        match self {
            Self::None => {}
            Self::Coming(making) => making.abort(),
            Self::Here(made) => made.close().await,
        }
    }
}
