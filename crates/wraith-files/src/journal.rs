//! Journal of a part file: an append-only log of its verified chunks.
//!
//! ```text
//! header, 128 bytes:  magic(16) ‖ size(8) ‖ mtime s(8) ‖ mtime ns(4) ‖ tree(1) ‖ 0(3) ‖ identity(32) ‖ boot id(16) ‖
//!                     part's device(8) ‖ part's inode(8) ‖ 0(8) ‖ check(16)
//! record, 48 bytes:   chunk index(8) ‖ chaining value(32) ‖ check(8)
//!                     first chunk(8) with the top bit set ‖ count(8) ‖ 0(24) ‖ check(8)           a hole
//!                     offset(8) with the second bit set ‖ length(8) ‖ 0(24) ‖ check(8)    earlier content
//! ```
//!
//! Integers are little-endian. Checks are BLAKE3; the check of an entry is keyed with identity,
//! size, time and tree, and covers the entry's position.
//!
//! An entry is valid if it and all entries before it are intact. After a kill, an incomplete entry
//! at the end is ignored and overwritten. An entry is appended after its chunk was handed to the
//! kernel. A later process compares chunks with their entries before it uses them: the machine may
//! have crashed in between, or another program may have written to the part.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::ftruncate;
use rustix::io::{Errno, Result};

use crate::entry::Mtime;
use crate::hash::{Cv, chunk_count};
use crate::read::read_at;
use crate::tree::Tree;
use crate::write::write_all_at;

const MAGIC: &[u8; 16] = b"wraith journal 1";
pub(crate) const HEADER_BYTES: usize = 128;
pub(crate) const ENTRY_BYTES: usize = 48;
const HOLE: u64 = 1 << 63;
const EARLIER: u64 = 1 << 62;

/// Number of entries read at once.
const ENTRIES_PER_READ: usize = 1024;

/// Identity of the part file that a journal belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) size: u64,
    pub(crate) mtime: Mtime,
    /// Hash tree of the chaining values: 0 for BLAKE3, 1 for the position-free tree.
    pub(crate) tree: Tree,
    /// Hash of sender, transfer and path.
    pub(crate) identity: [u8; 32],
    pub(crate) boot_id: [u8; 16],
    /// Device and inode of the part file. A copy with another inode must be verified first.
    pub(crate) part: (u64, u64),
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes.extend_from_slice(&self.mtime.s.to_le_bytes());
        bytes.extend_from_slice(&self.mtime.ns.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(self.tree == Tree::PositionFree), 0, 0, 0]);
        bytes.extend_from_slice(&self.identity);
        bytes.extend_from_slice(&self.boot_id);
        bytes.extend_from_slice(&self.part.0.to_le_bytes());
        bytes.extend_from_slice(&self.part.1.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let check = blake3::hash(&bytes);
        bytes.extend_from_slice(&check.as_bytes()[..16]);
        bytes.try_into().expect("the fields are 128 bytes")
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let (fields, check) = bytes.split_at(HEADER_BYTES - 16);
        if &fields[..16] != MAGIC || check != &blake3::hash(fields).as_bytes()[..16] {
            return None;
        }
        let u64_at = |at: usize| Some(u64::from_le_bytes(*fields.get(at..)?.first_chunk()?));
        let ns = u32::from_le_bytes(*fields.get(32..)?.first_chunk()?);
        let tree = match fields[36] {
            0 => Tree::Blake3,
            1 => Tree::PositionFree,
            _ => return None,
        };
        Some(Self {
            tree,
            size: u64_at(16)?,
            mtime: Mtime { s: u64_at(24)? as i64, ns },
            identity: *fields.get(40..)?.first_chunk()?,
            boot_id: *fields.get(72..)?.first_chunk()?,
            part: (u64_at(88)?, u64_at(96)?),
        })
    }

    /// Returns the key of the entry checks. It rejects entries of another file or version.
    fn entry_key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("wraith/1 journal entries");
        hasher.update(&self.identity).update(&self.size.to_le_bytes());
        hasher.update(&self.mtime.s.to_le_bytes()).update(&self.mtime.ns.to_le_bytes());
        if self.tree == Tree::PositionFree {
            hasher.update(b"position-free");
        }
        hasher.finalize().into()
    }

    /// Returns true if the journal was written after the last boot and for this same part file. If
    /// so, its chunks are in the page cache or on disk.
    pub(crate) fn is_current(&self, part: (u64, u64)) -> bool {
        let boot_id = boot_id();
        boot_id != [0; 16] && self.boot_id == boot_id && self.part == part
    }
}

/// Content that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalEntry {
    /// A verified chunk with this hash.
    Chunk { index: u64, cv: Cv },
    /// Verified chunks of zeros.
    Hole { first: u64, count: u64 },
    /// Bytes of an earlier version of the file, which are not verified content of this one.
    Earlier { offset: u64, len: u64 },
}

impl JournalEntry {
    fn encode(&self, key: &[u8; 32], position: u64) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        match self {
            Self::Chunk { index, cv } => {
                bytes[..8].copy_from_slice(&index.to_le_bytes());
                bytes[8..40].copy_from_slice(cv);
            }
            Self::Hole { first, count } => {
                bytes[..8].copy_from_slice(&(first | HOLE).to_le_bytes());
                bytes[8..16].copy_from_slice(&count.to_le_bytes());
            }
            Self::Earlier { offset, len } => {
                bytes[..8].copy_from_slice(&(offset | EARLIER).to_le_bytes());
                bytes[8..16].copy_from_slice(&len.to_le_bytes());
            }
        }
        let check = entry_check(key, position, &bytes);
        bytes[40..].copy_from_slice(&check);
        bytes
    }

    /// Returns `None` if the entry is incomplete, forged, moved, or names content beyond `size`.
    fn decode(bytes: &[u8; ENTRY_BYTES], key: &[u8; 32], position: u64, size: u64) -> Option<Self> {
        if bytes[40..] != entry_check(key, position, bytes) {
            return None;
        }
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (first, chunks) = (word(0)?, chunk_count(size));
        let (record, end, bound) = if first & HOLE != 0 {
            let (first, count) = (first & !HOLE, word(8)?);
            (Self::Hole { first, count }, first.checked_add(count)?, chunks)
        } else if first & EARLIER != 0 {
            let (offset, len) = (first & !EARLIER, word(8)?);
            (Self::Earlier { offset, len }, offset.checked_add(len)?, size)
        } else {
            let chunk = Self::Chunk { index: first, cv: *bytes[8..].first_chunk()? };
            (chunk, first.checked_add(1)?, chunks)
        };
        (end <= bound).then_some(record)
    }
}

fn entry_check(key: &[u8; 32], position: u64, bytes: &[u8; ENTRY_BYTES]) -> [u8; 8] {
    // One block of BLAKE3: 40 + 8 bytes.
    let mut message = *bytes;
    message[40..].copy_from_slice(&position.to_le_bytes());
    let hash = blake3::keyed_hash(key, &message);
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// An open, locked journal.
#[derive(Debug)]
pub(crate) struct Journal {
    fd: OwnedFd,
    header: Header,
    key: [u8; 32],
    /// End of the last intact entry, where the next one is written.
    end: u64,
}

impl Journal {
    /// Starts a new journal in `fd`. On failure returns `fd` with the error.
    pub(crate) fn begin(
        fd: OwnedFd,
        header: Header,
    ) -> std::result::Result<Self, (OwnedFd, Errno)> {
        let written =
            ftruncate(&fd, 0).and_then(|()| write_all_at(fd.as_fd(), &[&header.encode()], 0));
        match written {
            Ok(()) => Ok(Self { fd, key: header.entry_key(), header, end: HEADER_BYTES as u64 }),
            Err(errno) => Err((fd, errno)),
        }
    }

    /// Reads the header in `fd`. Returns `None` if there is no intact header.
    pub(crate) fn read_header(fd: &OwnedFd) -> Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        let read = read_at(fd.as_fd(), &mut bytes, 0)?;
        Ok(if read == HEADER_BYTES { Header::decode(&bytes) } else { None })
    }

    /// Returns whether `fd` is empty or begins like a journal, possibly an incomplete one.
    pub(crate) fn begins_like_one(fd: &OwnedFd) -> bool {
        let mut begin = [0; MAGIC.len()];
        read_at(fd.as_fd(), &mut begin, 0).is_ok_and(|read| begin[..read] == MAGIC[..read])
    }

    /// Continues the journal in `fd`, whose header the caller has read. It has no entries until
    /// [`Self::replay`].
    pub(crate) fn continued(fd: OwnedFd, header: Header) -> Self {
        Self { fd, key: header.entry_key(), header, end: HEADER_BYTES as u64 }
    }

    /// Calls `each` with every intact entry from the start, until it returns false. The next
    /// [`Self::append`] writes behind the last intact entry in any case.
    pub(crate) fn replay(&mut self, mut each: impl FnMut(JournalEntry) -> bool) -> Result<()> {
        let mut wanted = true;
        let mut buffer = vec![0; ENTRIES_PER_READ * ENTRY_BYTES];
        self.end = HEADER_BYTES as u64;
        loop {
            let read = read_at(self.fd.as_fd(), &mut buffer, self.end)?;
            let (entries, _torn) = buffer[..read].as_chunks::<ENTRY_BYTES>();
            for bytes in entries {
                let Some(record) =
                    JournalEntry::decode(bytes, &self.key, self.end, self.header.size)
                else {
                    return Ok(());
                };
                wanted = wanted && each(record);
                self.end += ENTRY_BYTES as u64;
            }
            if read < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Appends an entry with one write. If that fails, the journal is unchanged.
    pub(crate) fn append(&mut self, record: &JournalEntry) -> Result<()> {
        write_all_at(self.fd.as_fd(), &[&record.encode(&self.key, self.end)], self.end)?;
        self.end += ENTRY_BYTES as u64;
        Ok(())
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// Returns the kernel's boot ID, a random number generated at boot. Zero if it cannot be read. In
/// that case, no chunk of an earlier process is trusted without being read.
pub fn boot_id() -> [u8; 16] {
    static BOOT_ID: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT_ID.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        let mtime = Mtime { s: -5, ns: 7 };
        let boot_id = boot_id();
        let tree = Tree::PositionFree;
        Header { size: 1 << 40, mtime, tree, identity: [3; 32], boot_id, part: (1, 2) }
    }

    fn fd() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    fn begin(header: Header) -> Journal {
        Journal::begin(fd(), header).map_err(|(_, errno)| errno).unwrap()
    }

    fn entries(journal: &mut Journal) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        journal
            .replay(|record| {
                entries.push(record);
                true
            })
            .unwrap();
        entries
    }

    fn any_entry() -> impl Strategy<Value = JournalEntry> {
        prop_oneof![
            (0u64..1 << 22, any::<Cv>()).prop_map(|(index, cv)| JournalEntry::Chunk { index, cv }),
            (0u64..1 << 21, 0u64..1 << 21)
                .prop_map(|(first, count)| JournalEntry::Hole { first, count }),
            (0u64..1 << 39, 0u64..1 << 39)
                .prop_map(|(offset, len)| JournalEntry::Earlier { offset, len }),
        ]
    }

    fn bytes_of(journal: &Journal) -> Vec<u8> {
        let mut bytes = vec![0; journal.end as usize];
        assert_eq!(read_at(journal.fd.as_fd(), &mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    fn with_bytes(bytes: &[u8]) -> OwnedFd {
        let fd = fd();
        write_all_at(fd.as_fd(), &[bytes], 0).unwrap();
        fd
    }

    #[test]
    fn a_header_survives_and_any_changed_bit_is_noticed() {
        let journal = begin(header());
        assert_eq!(Journal::read_header(&journal.fd), Ok(Some(header())));
        let bytes = bytes_of(&journal);
        for bit in 0..HEADER_BYTES * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Journal::read_header(&with_bytes(&changed)), Ok(None), "bit {bit}");
        }
        for len in 0..HEADER_BYTES {
            assert_eq!(Journal::read_header(&with_bytes(&bytes[..len])), Ok(None));
        }
    }

    #[test]
    fn only_this_boot_and_this_part_count_at_once() {
        assert_ne!(boot_id(), [0; 16], "this test needs /proc");
        assert!(header().is_current((1, 2)));
        assert!(!header().is_current((1, 3)));
        assert!(!Header { boot_id: [9; 16], ..header() }.is_current((1, 2)));
    }

    #[test]
    fn records_beyond_the_file_end_the_journal() {
        let mut journal = begin(Header { size: 1 << 20, ..header() });
        journal.append(&JournalEntry::Chunk { index: 3, cv: [1; 32] }).unwrap();
        journal.append(&JournalEntry::Chunk { index: 4, cv: [1; 32] }).unwrap();
        assert_eq!(entries(&mut journal).len(), 1);
        journal.append(&JournalEntry::Hole { first: 2, count: u64::MAX - 1 }).unwrap();
        assert_eq!(entries(&mut journal).len(), 1);
        journal.append(&JournalEntry::Earlier { offset: 1, len: 1 << 20 }).unwrap();
        assert_eq!(entries(&mut journal).len(), 1);
    }

    #[test]
    fn records_of_another_version_or_tree_of_the_file_do_not_count() {
        let earlier = Header { mtime: Mtime { s: 0, ns: 0 }, ..header() };
        for other in [earlier, Header { tree: Tree::Blake3, ..header() }] {
            let mut journal = begin(header());
            journal.append(&JournalEntry::Chunk { index: 0, cv: [1; 32] }).unwrap();
            assert_eq!(entries(&mut Journal::continued(journal.into_fd(), other)), []);
        }
    }

    #[test]
    fn more_records_than_are_read_at_once_come_back() {
        let mut journal = begin(header());
        let all: Vec<JournalEntry> = (0..ENTRIES_PER_READ as u64 * 2 + 1)
            .map(|index| JournalEntry::Chunk { index, cv: [index as u8; 32] })
            .collect();
        all.iter().for_each(|record| journal.append(record).unwrap());
        assert_eq!(entries(&mut journal), all);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_journal_cut_anywhere_yields_the_whole_records_before_and_goes_on(
            all in proptest::collection::vec(any_entry(), 0..6), garbage in any::<[u8; 60]>(),
        ) {
            let mut journal = begin(header());
            all.iter().for_each(|record| journal.append(record).unwrap());
            let bytes = bytes_of(&journal);
            for cut in HEADER_BYTES..=bytes.len() {
                let whole = (cut - HEADER_BYTES) / ENTRY_BYTES;
                let mut torn = [&bytes[..cut], &garbage[..]].concat();
                if let Some(byte) = bytes.get(cut) {
                    // Random garbage must not reproduce the torn entry.
                    torn[cut] = !byte;
                }
                let mut torn = Journal::continued(with_bytes(&torn), header());
                prop_assert_eq!(&entries(&mut torn)[..], &all[..whole]);
                let next = JournalEntry::Chunk { index: 77, cv: [7; 32] };
                torn.append(&next).unwrap();
                let again = entries(&mut torn);
                prop_assert_eq!(&again[..whole], &all[..whole]);
                prop_assert_eq!(again.get(whole), Some(&next));
            }
        }

        #[test]
        fn a_flipped_bit_ends_the_journal_there(
            all in proptest::collection::vec(any_entry(), 1..6), bit in any::<prop::sample::Index>(),
        ) {
            let mut journal = begin(header());
            all.iter().for_each(|record| journal.append(record).unwrap());
            let mut bytes = bytes_of(&journal);
            let bit = bit.index((bytes.len() - HEADER_BYTES) * 8);
            bytes[HEADER_BYTES + bit / 8] ^= 1 << (bit % 8);
            let mut changed = Journal::continued(with_bytes(&bytes), header());
            prop_assert_eq!(&entries(&mut changed)[..], &all[..bit / 8 / ENTRY_BYTES]);
        }
    }
}
