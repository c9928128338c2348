//! The only module that accesses the caller's memory: it converts pointers to slices.
//!
//! An entry point (an exported C function) is made by `export!`. The [`Call`] represents the
//! promise that the header demands of the C code: each pointer is NULL, or points to as many
//! readable (or writable) items as its length says, until the call returns.
//!
//! Invariants: input is borrowed no longer than the call. Output is written only once, as the last
//! step. So the input and output buffers of a call may overlap, and a call that fails has written
//! nothing but `*out_len`.

mod callbacks;
mod errors;
mod export;
mod output;
mod types;
mod vault;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

pub use callbacks::{Callbacks, wraith_callbacks_t};
pub use errors::{last_error, restore};
pub(crate) use export::{export, export_argument, export_one};
pub use output::{OutPtr, Output, write_wanted};
pub(crate) use types::{c_enum, c_enum_of, c_struct};
pub use vault::{CallersVault, wraith_vault_callbacks_t};

use crate::bytes::{WRAITH_BATCH_MAX, wraith_bytes_t};
use crate::status::wraith_status_t::{WRAITH_OK, WRAITH_PANICKED};
use crate::status::{Failure, Outcome, wraith_status_t};

/// Runs the body of an entry point, which may read and write through the caller's pointers.
macro_rules! entry {
    (|$call:ident| $body:expr) => {
        $crate::border::enter(|| {
            // SAFETY: the surrounding entry point is unsafe to call, and its caller vouches for
            // every pointer.
            let $call = unsafe { $crate::border::Call::of_a_careful_caller() };
            let $call = &$call;
            $body
        })
    };
}
pub(crate) use entry;

/// Permission to follow the pointers of one call, while that call runs.
pub struct Call(());

/// Plain C data, for which any bytes are a valid value.
///
/// # Safety
/// The type is `repr(C)` or a primitive, and consists of integers, pointers and `Option`s of
/// function pointers only.
pub unsafe trait Plain: Copy {}

/// Compiles only for plain types.
pub(crate) const fn assert_plain<T: Plain>() {}

// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for usize {}
// SAFETY: a pointer and an integer.
unsafe impl Plain for wraith_bytes_t {}

impl Call {
    /// # Safety
    /// Every pointer given to the methods is NULL, or points to as many items as the length beside
    /// it says. While the entry point runs, no other thread writes to these items (or, for output,
    /// accesses them).
    pub unsafe fn of_a_careful_caller() -> Self {
        Self(())
    }

    /// Returns the bytes at `data`. NULL with a length of 0 means no bytes.
    pub fn bytes(&self, data: *const u8, len: usize) -> Outcome<&[u8]> {
        self.items(data, len)
    }

    /// Like [`Self::bytes`], of exactly `N` bytes.
    pub fn array<const N: usize>(&self, data: *const u8, len: usize) -> Outcome<&[u8; N]> {
        let bytes = self.bytes(data, len)?;
        bytes
            .try_into()
            .map_err(|_| Failure::input(format!("a buffer has {len} bytes instead of {N}")))
    }

    /// Like [`Self::bytes`], as UTF-8 text.
    pub fn text(&self, data: *const u8, len: usize) -> Outcome<&str> {
        let text = std::str::from_utf8(self.bytes(data, len)?);
        text.map_err(|_| Failure::input("a text is not UTF-8"))
    }

    /// Returns the bytes of a struct field.
    pub fn field(&self, bytes: wraith_bytes_t) -> Outcome<&[u8]> {
        self.bytes(bytes.data, bytes.len)
    }

    /// Like [`Self::field`], as UTF-8 text.
    pub fn text_field(&self, text: wraith_bytes_t) -> Outcome<&str> {
        self.text(text.data, text.len)
    }

    /// Returns the messages of a batch.
    pub fn messages(&self, items: *const wraith_bytes_t, count: usize) -> Outcome<Vec<&[u8]>> {
        if count > WRAITH_BATCH_MAX {
            return Err(Failure::input(format!(
                "one call has at most {WRAITH_BATCH_MAX} messages"
            )));
        }
        self.slices(items, count)
    }

    /// Returns several messages or paths.
    pub fn slices(&self, items: *const wraith_bytes_t, count: usize) -> Outcome<Vec<&[u8]>> {
        self.items(items, count)?.iter().map(|item| self.field(*item)).collect()
    }

    /// Reads a struct that starts with its size as the caller compiled it; `None` if the pointer is
    /// NULL. Fields beyond the caller's size are 0. Fields beyond this library's size must be 0.
    pub fn options<T: Plain>(&self, options: *const T) -> Outcome<Option<T>> {
        let Some(size) =
            self.items(options.cast::<usize>(), usize::from(!options.is_null()))?.first()
        else {
            return Ok(None);
        };
        // The size serves as a length, so a wrong one must be rejected before it is used.
        if !(size_of::<usize>()..=4096).contains(size) {
            return Err(Failure::input("struct_size is not the size of this struct"));
        }
        let given = self.bytes(options.cast(), *size)?;
        let (known, unknown) = given.split_at(given.len().min(size_of::<T>()));
        if unknown.iter().any(|byte| *byte != 0) {
            return Err(Failure::input("an option is set that this version does not know"));
        }
        let mut value = std::mem::MaybeUninit::<T>::zeroed();
        // SAFETY: `known` is no longer than a T. A T consists of integers and pointers, for which
        // any bytes and zeros are valid.
        Ok(Some(unsafe {
            value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(known.as_ptr(), known.len());
            value.assume_init()
        }))
    }

    /// Returns the output buffer for a result of variable length.
    pub fn output(&self, out: *mut u8, cap: usize, len: *mut usize) -> Outcome<Output<'_>> {
        if out.is_null() && cap > 0 {
            return Err(Failure::input("the buffer is NULL and has a length"));
        }
        Ok(Output::new(self, out, cap, self.out(len)?))
    }

    /// Returns the output place for one value.
    pub fn out<T: Plain>(&self, place: *mut T) -> Outcome<OutPtr<'_, T>> {
        self.out_or_null(place)?.ok_or_else(|| Failure::input("a pointer for a result is NULL"))
    }

    /// Like [`Self::out`], for an optional result.
    pub fn out_or_null<T: Plain>(&self, place: *mut T) -> Outcome<Option<OutPtr<'_, T>>> {
        if !place.is_aligned() {
            return Err(Failure::input("a pointer for a result is not aligned"));
        }
        Ok((!place.is_null()).then(|| OutPtr::new(self, place)))
    }

    /// Returns the output places for an array of `count` values.
    pub fn out_array<T: Plain>(&self, places: *mut T, count: usize) -> Outcome<Vec<OutPtr<'_, T>>> {
        // Checks pointer and count only, and reads no item.
        self.items(places.cast_const().cast::<std::mem::MaybeUninit<T>>(), count)?;
        Ok((0..count).map(|index| OutPtr::new(self, places.wrapping_add(index))).collect())
    }

    fn items<T: Copy>(&self, data: *const T, count: usize) -> Outcome<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        if data.is_null() || !data.is_aligned() {
            return Err(Failure::input("a pointer with a length above 0 is NULL or not aligned"));
        }
        let fits =
            count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
        if !fits {
            return Err(Failure::input("a length is larger than memory"));
        }
        // SAFETY: not NULL, aligned, and by the caller's promise `count` readable items that live
        // as long as the call.
        Ok(unsafe { slice::from_raw_parts(data, count) })
    }
}

/// Runs `body`. Stores its failure for [`last_error`]; a panic becomes a failure.
pub fn enter(body: impl FnOnce() -> Outcome) -> wraith_status_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => WRAITH_OK,
        Ok(Err(failure)) => errors::store(failure),
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
            errors::store(Failure::new(
                WRAITH_PANICKED,
                format!("bug in the library: {}", words.unwrap_or_default()),
            ))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::status::wraith_status_t::*;

    pub(crate) fn call() -> Call {
        // SAFETY: the tests pass valid pointers.
        unsafe { Call::of_a_careful_caller() }
    }

    #[test]
    fn an_empty_slice_may_be_null_but_a_length_needs_a_pointer() {
        assert_eq!(call().bytes(std::ptr::null(), 0).unwrap(), b"");
        assert!(call().bytes(std::ptr::null(), 1).is_err());
        assert!(call().bytes(b"x".as_ptr(), usize::MAX).is_err());
        assert_eq!(call().array::<2>(b"xy".as_ptr(), 2).unwrap(), b"xy");
        assert!(call().array::<3>(b"xy".as_ptr(), 2).is_err());
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        assert_eq!(enter(|| panic!("{} things", 2)), WRAITH_PANICKED);
        assert_eq!(last_error(), "bug in the library: 2 things");
        assert_eq!(enter(|| Ok(())), WRAITH_OK);
    }

    #[test]
    fn a_buffer_that_is_too_small_gets_the_needed_length() {
        let (call, mut buffer, mut len) = (call(), [0u8; 4], 0usize);
        let output = call.output(buffer.as_mut_ptr(), 4, &mut len).unwrap();
        assert_eq!(output.room(5).unwrap_err().status, WRAITH_BUFFER_TOO_SMALL);
        assert_eq!(len, 5);
        let output = call.output(buffer.as_mut_ptr(), 4, &mut len).unwrap();
        output.write(b"abc").unwrap();
        assert_eq!((&buffer, len), (b"abc\0", 3));
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Options {
        struct_size: usize,
        one: u64,
        two: u64,
    }
    // SAFETY: integers.
    unsafe impl Plain for Options {}

    #[test]
    fn options_unknown_to_an_older_caller_are_zero() {
        let full = size_of::<Options>();
        let mut given = Options { struct_size: full, one: 1, two: 2 };
        let read = |given: &Options| call().options(given);
        assert_eq!(read(&given).unwrap().unwrap().two, 2);
        given.struct_size = full - 8;
        assert_eq!(read(&given).unwrap().unwrap().two, 0);
        given.struct_size = 0;
        assert!(read(&given).is_err());
        assert!(call().options::<Options>(std::ptr::null()).unwrap().is_none());
    }

    #[test]
    fn an_unknown_option_is_an_error_only_if_it_is_set() {
        #[repr(C)]
        struct Newer(Options, u64);
        let size = size_of::<Newer>();
        let mut newer = Newer(Options { struct_size: size, one: 1, two: 2 }, 0);
        assert_eq!(call().options((&raw const newer).cast::<Options>()).unwrap().unwrap().one, 1);
        newer.1 = 7;
        assert!(call().options((&raw const newer).cast::<Options>()).is_err());
    }
}
