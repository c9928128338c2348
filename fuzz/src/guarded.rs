//! Buffers at any alignment, whose neighbourhood catches accesses outside them.
//!
//! - A buffer in a [`Region`] has an inaccessible page before and behind it. An access beyond a
//!   buffer that touches such a page ends the process.
//! - The other bytes of the region have a known value, which is verified when the buffer is dropped.
//! - A buffer on the heap has exactly its length, for AddressSanitizer.
#![allow(unsafe_code)]

#[cfg(unix)]
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// The place of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// So many bytes behind the inaccessible page before it.
    Front(usize),
    /// So many bytes before the inaccessible page behind it.
    Back(usize),
    /// On the heap, so many bytes behind the start of the allocation.
    Heap(usize),
}

impl Place {
    /// Returns the place that a byte stands for. Offsets are below 64, and often 0.
    pub(crate) fn of(byte: u8) -> Self {
        let offset = usize::from(byte % 64);
        match byte / 64 {
            0 => Self::Back(0),
            1 => Self::Front(offset),
            2 => Self::Back(offset),
            _ => Self::Heap(offset),
        }
    }
}

/// Bytes at a [`Place`].
pub(crate) struct Buffer {
    memory: Memory,
    start: usize,
    len: usize,
}

enum Memory {
    #[cfg(unix)]
    Region(Region),
    Heap(Vec<u8>),
    /// The allocator aligns words, but need not align bytes.
    HeapOfWords(Vec<u64>),
}

impl Buffer {
    pub(crate) fn new(place: Place, bytes: &[u8]) -> Self {
        let len = bytes.len();
        let (memory, start) = match place {
            #[cfg(unix)]
            Place::Front(_) | Place::Back(_) if len + 64 <= Region::writable() => {
                let start = match place {
                    Place::Back(offset) => Region::writable() - len - offset,
                    Place::Front(offset) | Place::Heap(offset) => offset,
                };
                (Memory::Region(Region::take()), start)
            }
            Place::Front(offset) | Place::Back(offset) | Place::Heap(offset) => {
                let total = offset + len;
                let memory = match total.is_multiple_of(8) {
                    true => Memory::HeapOfWords(vec![0; total / 8]),
                    false => Memory::Heap(vec![0; total]),
                };
                (memory, offset)
            }
        };
        let mut buffer = Self { memory, start, len };
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let first = match &self.memory {
            #[cfg(unix)]
            Memory::Region(region) => region.0.cast_const(),
            Memory::Heap(bytes) => bytes.as_ptr(),
            Memory::HeapOfWords(words) => words.as_ptr().cast(),
        };
        // SAFETY: `new` chose a start and a length within the memory, which this buffer owns.
        unsafe { std::slice::from_raw_parts(first.add(self.start), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let first = match &mut self.memory {
            #[cfg(unix)]
            Memory::Region(region) => region.0,
            Memory::Heap(bytes) => bytes.as_mut_ptr(),
            Memory::HeapOfWords(words) => words.as_mut_ptr().cast(),
        };
        // SAFETY: as above, and the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(first.add(self.start), self.len) }
    }
}

#[cfg(unix)]
impl Drop for Buffer {
    fn drop(&mut self) {
        let Memory::Region(region) = &self.memory else { return };
        // SAFETY: the region is mapped, and the buffer owns it.
        let all = unsafe { std::slice::from_raw_parts(region.0, Region::writable()) };
        let (before, behind) = (&all[..self.start], &all[self.start + self.len..]);
        if !std::thread::panicking() {
            // Each byte is the next one: a comparison of memory, which is fast under libFuzzer too.
            let is_untouched = |bytes: &[u8]| match bytes {
                [] => true,
                [first, rest @ ..] => *first == UNTOUCHED && bytes[..rest.len()] == *rest,
            };
            assert!(is_untouched(before), "bytes before a buffer of {} were written", self.len);
            assert!(is_untouched(behind), "bytes behind a buffer of {} were written", self.len);
        }
    }
}

/// The bytes of a region around its buffer.
#[cfg(unix)]
const UNTOUCHED: u8 = 0xa5;

/// Pages between two inaccessible ones. Points to the first writable byte.
#[cfg(unix)]
struct Region(*mut u8);

#[cfg(unix)]
impl Region {
    /// Returns the number of writable bytes.
    fn writable() -> usize {
        8192_usize.next_multiple_of(rustix::param::page_size())
    }

    /// Returns an unused region whose bytes are all [`UNTOUCHED`].
    fn take() -> Self {
        let region = UNUSED.with_borrow_mut(Vec::pop).map_or_else(Self::map, Self);
        // SAFETY: the region is mapped, writable, and nobody else's.
        unsafe { region.0.write_bytes(UNTOUCHED, Self::writable()) };
        region
    }

    fn map() -> Self {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        let page = rustix::param::page_size();
        let len = Self::writable() + 2 * page;
        // SAFETY: the mapping is new, and the pages whose access is permitted are within it.
        unsafe {
            let all =
                mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE)
                    .expect("there is memory");
            let writable = all.byte_add(page);
            mprotect(writable, Self::writable(), MprotectFlags::READ | MprotectFlags::WRITE)
                .expect("the pages are mapped");
            Self(writable.cast())
        }
    }
}

#[cfg(unix)]
impl Drop for Region {
    fn drop(&mut self) {
        // Kept for the next buffer. A thread's regions stay mapped when it ends.
        _ = UNUSED.try_with(|unused| unused.borrow_mut().push(self.0));
    }
}

#[cfg(unix)]
thread_local! {
    /// Regions of this thread that no buffer uses.
    static UNUSED: RefCell<Vec<*mut u8>> = const { RefCell::new(Vec::new()) };
}
