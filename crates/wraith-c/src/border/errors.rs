//! The words of the last failure, one of each thread: so what one thread does is never told to another.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::status::{Failure, wraith_status_t};

thread_local! {
    static LAST: RefCell<Cow<'static, str>> = const { RefCell::new(Cow::Borrowed("")) };
}

/// Keeps the words and returns the number.
pub(super) fn keep(failure: Failure) -> wraith_status_t {
    // A thread that is ending has nobody who would ask.
    let _ = LAST.try_with(|last| *last.borrow_mut() = failure.words);
    failure.status
}

/// What the last failure on this thread was, in words; empty if there was none.
pub fn last_error() -> Cow<'static, str> {
    LAST.try_with(|last| last.borrow().clone()).unwrap_or_default()
}

/// Puts words back that something of no interest has replaced.
pub fn restore(words: Cow<'static, str>) {
    let _ = LAST.try_with(|last| *last.borrow_mut() = words);
}
