//! Functions of the caller that the library calls.

use std::ffi::c_void;

use super::Plain;
use crate::files::event::{Event, wraith_event_t, wraith_offer_info_t};
use crate::files::event::{OfferShown, wraith_answer_t};

/// What is told of a transfer, and asked. All functions but `ask` may be NULL.
///
/// They are called from one thread of the library that belongs to this transfer alone, never two at a time, and in order.
/// They may block (a transfer goes on meanwhile, except that nothing is written before `ask` has answered), and they may
/// call this library, also for the same transfer; only `wraith_transfer_wait` for it is refused there. No C++ exception
/// and no `longjmp` may leave them. What their pointers lead to is good until they return.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_callbacks_t {
    /// `sizeof(wraith_callbacks_t)`.
    pub struct_size: usize,
    /// Is given to each function.
    pub user: *mut c_void,
    /// Something happened. Who is too slow for 1024 of them misses some, and is told how many; the last is never missed.
    pub event: Option<unsafe extern "C" fn(user: *mut c_void, event: *const wraith_event_t)>,
    /// Whether to fetch what is offered: a `wraith_answer_t`. Asked once of each fetch; what is not known counts as later.
    pub ask:
        Option<unsafe extern "C" fn(user: *mut c_void, offer: *const wraith_offer_info_t) -> i32>,
    /// The last call of all: from here on `user` is not used any more. It comes after the last event, or after
    /// `wraith_transfer_free`; of a transfer that could not be started it does not come.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

// SAFETY: an integer, a pointer, and functions or nothing.
unsafe impl Plain for wraith_callbacks_t {}

/// The functions of one transfer, to be called from one thread.
#[derive(Debug)]
pub struct Callbacks(wraith_callbacks_t);

// SAFETY: the pointer among them is only handed back, and the header says on which thread that happens.
unsafe impl Send for Callbacks {}

/// What `ask` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Fetch it.
    Accept,
    /// No.
    Refuse,
    /// Not now.
    Later,
}

impl Callbacks {
    pub fn new(callbacks: wraith_callbacks_t) -> Self {
        Self(callbacks)
    }

    pub fn can_ask(&self) -> bool {
        self.0.ask.is_some()
    }

    pub fn tell(&self, event: &Event) {
        let Some(function) = self.0.event else { return };
        event.with_c(|event| {
            // SAFETY: a function of the caller with this signature, and a struct that lives until it returns.
            unsafe { function(self.0.user, event) }
        });
    }

    pub fn ask(&self, offer: &OfferShown) -> Answer {
        let Some(function) = self.0.ask else { return Answer::Later };
        // SAFETY: as in `tell`.
        let answer = offer.with_c(|offer| unsafe { function(self.0.user, offer) });
        match answer {
            _ if answer == wraith_answer_t::WRAITH_ACCEPT as i32 => Answer::Accept,
            _ if answer == wraith_answer_t::WRAITH_REFUSE as i32 => Answer::Refuse,
            _ => Answer::Later,
        }
    }

    /// The last call.
    pub fn release(self) {
        if let Some(function) = self.0.release {
            // SAFETY: as in `tell`.
            unsafe { function(self.0.user) }
        }
    }
}
