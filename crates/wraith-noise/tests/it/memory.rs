//! A global allocator that counts allocations and searches freed memory for secrets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static WATCHED: Cell<&'static [[u8; 32]]> = const { Cell::new(&[]) };
    static FOUND: Cell<u64> = const { Cell::new(0) };
}

struct Watching;

// SAFETY: every call is forwarded to `System` with the same memory. `alloc` initialises all of it,
// so `dealloc` may read it.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds the contract of `alloc`, which is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let watched = WATCHED.get();
        if !watched.is_empty() {
            // SAFETY: the caller still owns the block, guarantees its size and will not use it
            // again.
            let block = unsafe { std::slice::from_raw_parts(memory, layout.size()) };
            let holds = |secret: &[u8; 32]| block.windows(32).any(|window| window == secret);
            FOUND.set(FOUND.get() + watched.iter().filter(|secret| holds(secret)).count() as u64);
        }
        // SAFETY: the caller upholds the contract of `dealloc`, which is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static WATCHING: Watching = Watching;

/// Returns the number of allocations by this thread so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Returns how many times one of `secrets` lay in memory that this thread freed during `action`.
pub(crate) fn found_in_freed_memory(secrets: &[[u8; 32]], action: impl FnOnce()) -> u64 {
    let before = FOUND.get();
    // Leaked on purpose: freeing the list would count as a find.
    WATCHED.set(Box::leak(secrets.into()));
    action();
    WATCHED.set(&[]);
    FOUND.get() - before
}

#[test]
fn a_secret_in_memory_that_is_given_back_is_found() {
    let secret: [u8; 32] = std::array::from_fn(|i| i as u8 + 1);
    assert_eq!(
        found_in_freed_memory(&[secret], || drop(black_box(Box::new([[0; 32], secret])))),
        1
    );
    assert_eq!(
        found_in_freed_memory(&[secret], || drop(black_box(Box::new([[0; 32], [7; 32]])))),
        0
    );
}
