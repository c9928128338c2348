//! Events of a transfer as plain structs. `bindings/events.rs` lists them.

use wraith::OfferInfo;

use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::WRAITH_OK;
use crate::status::{Failure, wraith_status_t};

/// A value of an event as a number.
trait Number {
    fn number(&self) -> u32;
}

impl Number for Option<u32> {
    fn number(&self) -> u32 {
        self.unwrap_or(0)
    }
}

/// Defines the enums of values in events.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident $c:ident {
        $($(#[$value_doc:meta])* $value:ident $number:ident = $n:literal: $pattern:pat,)*
    })*) => { $(
        $(#[$doc])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $c { $($(#[$value_doc])* $number = $n,)* }

        impl Number for wraith::$name {
            fn number(&self) -> u32 {
                match self { $($pattern => $c::$number as u32,)* }
            }
        }
    )* };
}

/// Sets a field of an event.
macro_rules! set {
    ($event:ident $shown:ident nowhere $value:expr) => {
        let _ = &$value;
    };
    ($event:ident $shown:ident peer $value:expr) => {
        $event.peer = Some(*$value.as_bytes())
    };
    ($event:ident $shown:ident address $value:expr) => {
        $event.text = $shown($value)
    };
    ($event:ident $shown:ident error $value:expr) => {
        $event.set_failure(&Failure::from($value.clone()))
    };
    ($event:ident $shown:ident detail $value:expr) => {
        $event.detail = $value.number()
    };
    ($event:ident $shown:ident text $value:expr) => {
        $event.text = $value
    };
    ($event:ident $shown:ident path $value:expr) => {
        $event.path = Option::<String>::from($value).unwrap_or_default()
    };
    ($event:ident $shown:ident $number:ident $value:expr) => {
        $event.$number = u64::from($value)
    };
}

/// Defines the kinds of events, and the conversion from those of the library.
macro_rules! events {
    (
        everywhere { $(
            $(#[$doc:meta])* $name:ident $kind:ident = $n:literal, $pattern:pat
            $(=> {
                $($(#[$field_doc:meta])* $slot:ident $field:ident: $type:ty = $value:expr,)*
            } $(c { $($(#[$more_doc:meta])* $more:ident = $more_value:expr,)* })?)?,
        )* }
        languages { $($languages:tt)* }
        c { $($(#[$own_doc:meta])* $own:ident = $own_n:literal,)* }
    ) => {
        /// The kind of an event. Later versions add numbers; ignore unknown ones.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum wraith_event_kind_t {
            $($(#[$own_doc])* $own = $own_n,)*
            $($(#[$doc])* $kind = $n,)*
        }

        impl Event {
            /// Converts an event of the library. `shown` is the text of an address.
            pub fn of(event: wraith::Event, shown: impl Fn(&wraith::Addr) -> String) -> Self {
                let mut event_of_c = Self::new(WRAITH_EVENT_OTHER);
                match &event.or_note() {
                    $($pattern => {
                        event_of_c.kind = $kind;
                        $(
                            $(set!(event_of_c shown $slot $value);)*
                            $($(set!(event_of_c shown $more $more_value);)*)?
                        )?
                    })*
                    _ => {}
                }
                event_of_c
            }
        }
    };
}

include!("../../../../bindings/events.rs");

use wraith_event_kind_t::*;

/// An event. Fields that its kind does not use are 0, empty or NULL.
#[repr(C)]
#[derive(Debug)]
pub struct wraith_event_t {
    /// A `wraith_event_kind_t`.
    pub kind: u32,
    /// The result, for `WRAITH_EVENT_FAILED` and `WRAITH_EVENT_RECEIVER_FAILED`.
    pub status: wraith_status_t,
    /// Meaning depends on the kind.
    pub detail: u32,
    /// Meaning depends on the kind.
    pub bytes: u64,
    /// Meaning depends on the kind.
    pub count: u64,
    /// A path, name or place: UTF-8, escaped for a terminal.
    pub path: wraith_bytes_t,
    /// Text for people.
    pub text: wraith_bytes_t,
    /// The other side's NodeId (32 bytes), or empty.
    pub peer: wraith_bytes_t,
}

/// Summary of an offer, as the sender declares it.
#[repr(C)]
#[derive(Debug)]
pub struct wraith_offer_info_t {
    /// The sender's NodeId (32 bytes); authenticated.
    pub sender: wraith_bytes_t,
    /// The first name, escaped for a terminal. For display only.
    pub name: wraith_bytes_t,
    /// Number of regular files.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Total bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest: u64,
    /// Number of entries that cannot be sent. The other counts do not include them.
    pub left_out: u64,
    /// 1 for one byte stream. If its size is unknown, `bytes` is 0.
    pub is_stream: u32,
}

/// The answer to an offer.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_answer_t {
    /// Postpone: the offer stays valid.
    WRAITH_POSTPONE = 0,
    /// Fetch the offer.
    WRAITH_ACCEPT = 1,
    /// Decline, and notify the sender.
    WRAITH_REFUSE = 2,
}

/// An event that owns its memory.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub kind: wraith_event_kind_t,
    status: wraith_status_t,
    detail: u32,
    bytes: u64,
    count: u64,
    path: String,
    text: String,
    peer: Option<[u8; 32]>,
}

impl Event {
    fn new(kind: wraith_event_kind_t) -> Self {
        let (path, text) = (String::new(), String::new());
        Self { kind, status: WRAITH_OK, detail: 0, bytes: 0, count: 0, path, text, peer: None }
    }

    pub fn lagged(count: u64) -> Self {
        Self { count, ..Self::new(WRAITH_EVENT_LAGGED) }
    }

    pub fn progress(files: u64, bytes: u64) -> Self {
        Self { count: files, bytes, ..Self::new(WRAITH_EVENT_PROGRESS) }
    }

    pub fn done() -> Self {
        Self::new(WRAITH_EVENT_DONE)
    }

    pub fn failed(failure: &Failure) -> Self {
        let mut event = Self::new(WRAITH_EVENT_FAILED);
        event.set_failure(failure);
        event
    }

    fn set_failure(&mut self, failure: &Failure) {
        self.status = failure.status;
        self.text = failure.words.to_string();
    }

    /// Returns true for a final event.
    pub fn is_last(&self) -> bool {
        matches!(self.kind, WRAITH_EVENT_DONE | WRAITH_EVENT_FAILED)
    }

    /// Calls `to` with the C form of the event.
    pub fn with_c<R>(&self, to: impl FnOnce(&wraith_event_t) -> R) -> R {
        to(&wraith_event_t {
            kind: self.kind as u32,
            status: self.status,
            detail: self.detail,
            bytes: self.bytes,
            count: self.count,
            path: wraith_bytes_t::of(self.path.as_bytes()),
            text: wraith_bytes_t::of(self.text.as_bytes()),
            peer: self.peer.as_ref().map_or(wraith_bytes_t::EMPTY, |peer| wraith_bytes_t::of(peer)),
        })
    }
}

/// An offer that waits for an answer.
#[derive(Debug)]
pub(crate) struct OfferShown {
    pub sender: [u8; 32],
    pub info: OfferInfo,
}

impl OfferShown {
    /// Calls `to` with the C form of the offer.
    pub fn with_c<R>(&self, to: impl FnOnce(&wraith_offer_info_t) -> R) -> R {
        let info = &self.info;
        to(&wraith_offer_info_t {
            sender: wraith_bytes_t::of(&self.sender),
            name: wraith_bytes_t::of(info.name.as_bytes()),
            files: info.files,
            folders: info.folders,
            links: info.links,
            bytes: info.bytes,
            largest: info.largest,
            left_out: info.left_out,
            is_stream: info.is_stream.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use wraith::Event as LibraryEvent;

    use super::*;

    #[test]
    fn every_event_of_an_offer_has_a_kind_of_its_own() {
        let lost = || "no ticket".parse::<wraith::Source>().unwrap_err();
        for (event, kind) in [
            (LibraryEvent::Resumed, WRAITH_EVENT_RESUMED),
            (LibraryEvent::StateNotStored("full".into()), WRAITH_EVENT_NOTE),
            (LibraryEvent::UnauthorizedPeer, WRAITH_EVENT_UNAUTHORIZED_PEER),
            (LibraryEvent::ClosedToNewReceivers(lost()), WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS),
            (LibraryEvent::Served { done: 2, of: Some(3) }, WRAITH_EVENT_SERVED),
            (LibraryEvent::ReceiverReconnected, WRAITH_EVENT_RECEIVER_RECONNECTED),
            (LibraryEvent::ReceiverFailed(lost()), WRAITH_EVENT_RECEIVER_FAILED),
        ] {
            let event = Event::of(event, ToString::to_string);
            assert_eq!(event.kind, kind);
            assert!(!event.is_last());
        }
        let failed = Event::of(LibraryEvent::ReceiverFailed(lost()), ToString::to_string);
        assert_eq!(failed.status, wraith_status_t::WRAITH_INVALID_INPUT);
    }
}
