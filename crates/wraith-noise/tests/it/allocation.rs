//! Sealing and opening are on the path of every packet: they must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use wraith_noise::{CidMask, Opener, PACKET_OVERHEAD, Sealer, Suite};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts.
struct Counting;

// SAFETY: every call goes to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn sealing_and_opening_packets_allocates_nothing() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let mut sealer = Sealer::new(suite, &[1; 32], [2; 32], [3; 8], [4; 32]);
        let mut opener = Opener::new(suite, &[1; 32], [2; 32], [3; 8]);
        let cid_mask = CidMask::new([4; 32]);
        let mut packet = vec![0; 1400 + PACKET_OVERHEAD];
        let before = ALLOCATIONS.get();
        assert!(before > 0, "the counter counts");
        for pn in 0..100 {
            sealer.seal(pn, &mut packet);
            let cid = cid_mask.unmask(&packet).expect("long enough");
            opener.open(cid, &mut packet).expect("authentic");
            assert!(opener.open(cid, &mut packet).is_err(), "opened already, so nothing authentic");
        }
        assert_eq!(ALLOCATIONS.get(), before);
    }
}
