//! The message of the last failure, per thread, so that no thread reads the failure of another.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::status::{Failure, wraith_status_t};

thread_local! {
    static LAST: RefCell<Cow<'static, str>> = const { RefCell::new(Cow::Borrowed("")) };
}

/// Stores the message and returns the status.
pub(super) fn store(failure: Failure) -> wraith_status_t {
    // On a thread that is ending, no later call can read the message.
    let _ = LAST.try_with(|last| *last.borrow_mut() = failure.words);
    failure.status
}

/// Returns the message of the last failure on this thread; empty if there was none.
pub fn last_error() -> Cow<'static, str> {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or_default()
}

/// Restores a message that an irrelevant failure has replaced.
pub fn restore(words: Cow<'static, str>) {
    let _ = LAST.try_with(|last| *last.borrow_mut() = words);
}
