//! Callbacks of a transfer: functions of the caller that the library calls.

use std::ffi::c_void;

use super::Plain;
use crate::files::event::wraith_answer_t::{self, *};
use crate::files::event::{Event, OfferShown, wraith_event_t, wraith_offer_info_t};

/// Callbacks of a transfer. All functions but `ask` may be NULL.
///
/// They are called from one thread of the library that belongs to this transfer alone, never two at
/// a time, and in order. They may block. The transfer continues meanwhile, except that nothing is
/// written before `ask` has answered. They may call this library, also for the same transfer; only
/// `wraith_transfer_wait` for it is refused there. No C++ exception and no `longjmp` may leave
/// them. Their pointer arguments are valid until they return.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_callbacks_t {
    /// `sizeof(wraith_callbacks_t)`.
    pub struct_size: usize,
    /// Passed to each function.
    pub user: *mut c_void,
    /// Reports an event. At most 1024 events are queued; a slower reader misses the oldest and gets
    /// their number. The last event is never missed.
    pub event: Option<unsafe extern "C" fn(user: *mut c_void, event: *const wraith_event_t)>,
    /// Decides whether to fetch an offer; returns a `wraith_answer_t`. Called once for each fetch.
    /// An unknown value counts as later.
    pub ask:
        Option<unsafe extern "C" fn(user: *mut c_void, offer: *const wraith_offer_info_t) -> i32>,
    /// The last call of all; `user` is not used after it. It comes after the last event, or after
    /// `wraith_transfer_free`. It does not come for a transfer that could not be started.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

// SAFETY: an integer, a pointer, and optional function pointers.
unsafe impl Plain for wraith_callbacks_t {}

/// The callbacks of one transfer, called from one thread.
#[derive(Debug)]
pub struct Callbacks(wraith_callbacks_t);

// SAFETY: the `user` pointer is only passed back, and the header documents the calling thread.
unsafe impl Send for Callbacks {}

impl Callbacks {
    pub fn new(callbacks: wraith_callbacks_t) -> Self {
        Self(callbacks)
    }

    pub fn can_ask(&self) -> bool {
        self.0.ask.is_some()
    }

    pub fn report(&self, event: &Event) {
        let Some(function) = self.0.event else { return };
        event.with_c(|event| {
            // SAFETY: the caller's function has this signature, and the struct lives until it
            // returns.
            unsafe { function(self.0.user, event) }
        });
    }

    pub fn ask(&self, offer: &OfferShown) -> wraith_answer_t {
        let Some(function) = self.0.ask else { return WRAITH_POSTPONE };
        // SAFETY: as in `report`.
        let answer = offer.with_c(|offer| unsafe { function(self.0.user, offer) });
        match answer {
            _ if answer == WRAITH_ACCEPT as i32 => WRAITH_ACCEPT,
            _ if answer == WRAITH_REFUSE as i32 => WRAITH_REFUSE,
            _ => WRAITH_POSTPONE,
        }
    }

    /// Makes the last call.
    pub fn release(self) {
        if let Some(function) = self.0.release {
            // SAFETY: as in `report`.
            unsafe { function(self.0.user) }
        }
    }
}
