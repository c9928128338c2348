//! Every bound of the transfer protocol (SPEC §10.9), with its reason.
//!
//! A peer that goes beyond one of them is cut off; nothing here grows with what a peer says.

use std::time::Duration;

/// Protocol version in Hello.
pub const VERSION: u64 = 1;

/// Bytes in a close reason (SPEC §5, CLOSE).
pub const REASON_BYTES_MAX: usize = 512;

/// Bytes in one manifest entry (SPEC §10.4): a path and a link target of 4096 each, the fixed fields, and room for fields of later
/// versions.
pub const ENTRY_BYTES_MAX: usize = 9 * 1024;
const _: () = assert!(wraith_files::ENTRY_BYTES_MAX <= ENTRY_BYTES_MAX);

/// Entries in a manifest: entry numbers are 32 bits on the wire.
pub const ENTRIES_MAX: u64 = u32::MAX as u64;

/// Bytes of a file name shown in an offer.
pub const NAME_BYTES_MAX: usize = 255;
/// Top-level names in an offer, together: some thousands. Of more the offer says none.
pub const OFFER_NAMES_BYTES_MAX: usize = 64 << 10;

/// Wanted but not yet settled entries at the receiver: about 16 MiB of bookkeeping. It stops reading the manifest beyond.
pub const OUTSTANDING_ENTRIES_MAX: usize = 65_536;

/// The same for the bytes of their paths, so that long names do not multiply it.
pub const OUTSTANDING_PATH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Entries of an offer that are looked at before it is accepted; as many as may be outstanding later, so memory is the same.
pub const PREVIEW_ENTRIES_MAX: usize = OUTSTANDING_ENTRIES_MAX;

/// The same for the bytes of their paths and link targets.
pub const PREVIEW_PATH_BYTES_MAX: usize = OUTSTANDING_PATH_BYTES_MAX;

/// How long the names of an offer are waited for before it is shown without (the rest of) them.
pub const PREVIEW_TIME: Duration = Duration::from_secs(3);

/// Entries the sender keeps that are undecided or unsent. Twice the receiver's bound, so an honest receiver never waits
/// for a sender that waits for it.
pub const KEPT_ENTRIES_MAX: usize = 2 * OUTSTANDING_ENTRIES_MAX;

/// The same for the bytes of their paths.
pub const KEPT_PATH_BYTES_MAX: usize = 2 * OUTSTANDING_PATH_BYTES_MAX;

/// Entries after which a receiver sends what it has decided, even while more of the manifest is waiting.
pub const WANT_ENTRIES_MAX: usize = 4096;

/// Ranges in one Want message. Beyond it, a part file's smallest gaps are fetched along with their surroundings.
pub const WANT_RANGES_MAX: usize = 16_384;

/// Entries in one Exceptions message. What was sent and is not there is told at the latest when twice as many wait for it.
pub const EXCEPTIONS_MAX: usize = 16_384;

/// Links that are kept until all files are in place; more are made at once, which is as safe: nothing is ever written
/// through a link.
pub const LINKS_KEPT_MAX: usize = 65_536;

/// The same for the bytes of their paths and targets, which can be 8 KiB a link.
pub const LINKS_KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Data streams a sender may open: one for each of its workers.
pub const DATA_STREAMS_MAX: u64 = 4;

/// Further connections of one transfer (SPEC §10.13): together with the first, four I/O threads on each side. More than
/// about 30 Gbit/s no disk takes.
pub const PARALLEL_MAX: usize = 3;

/// How long a further connection may take to stand. Where a firewall stops it, the transfer goes on without.
pub const PARALLEL_TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes per second from which one connection is worth helping: two thirds of what one I/O thread moves with small datagrams.
/// On a slower path it is the path that is full, and several connections would only take more than their share of it.
pub const PARALLEL_RATE: u64 = 400_000_000;

/// Round trip beyond which no further connections are made, whatever the rate: what is far away is shared with others.
pub const PARALLEL_RTT_MAX: Duration = Duration::from_millis(5);

/// Bytes that must be left: what one connection moves in the time the others take to stand and to find their rate.
pub const PARALLEL_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// Files of which the receiver holds some but not all chunks at once (open part files). A sender interleaves no more
/// than one per worker; twice that leaves room for the ends of files still on the way.
pub const OPEN_FILES_MAX: usize = 16;

/// Open descriptors of complete files that wait for their names: one each, two for a large one. As many again are being named
/// meanwhile, which together is half of what a process may usually have. More would hardly be faster.
pub const UNNAMED_DESCRIPTORS_MAX: usize = 256;

/// Bytes of these files, so that a batch is short enough to be written back while the next one comes.
pub const UNNAMED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A received piece smaller than this is copied together with its neighbours, so that a peer that sends single bytes
/// cannot make a 256 KiB chunk cost 256 Ki allocations (or more slices than `pwritev` takes).
pub const SMALL_PIECE_BYTES: usize = 8 * 1024;

/// A manifest may go beyond its offer by a sixteenth and this much: trees live while they are sent.
pub const OFFER_SLACK_BYTES: u64 = 64 * 1024 * 1024;

/// The same for the number of entries.
pub const OFFER_SLACK_ENTRIES: u64 = 1024;

/// Without [`STALL_BYTES`] in this time, while something is awaited, the peer is taken for dead or stuck.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The least a live peer moves within [`STALL_TIMEOUT`] (about 1 kbit/s).
pub const STALL_BYTES: u64 = 16 * 1024;

/// The first messages and streams must arrive within this time.
pub const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an offer may take: the sender may have to walk a large tree first.
pub const OFFER_TIMEOUT: Duration = Duration::from_secs(600);

/// How long the receiver waits for the sender to say that it has the receipt. Everything is on disk by then.
pub const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// A sender that reads a long stretch it need not send says so every this many chunks (64 MiB).
pub const PULSE_CHUNKS: u64 = 256;

/// Bytes of a stream that a sender keeps until the receiver has taken them: enough for 1 Gbit/s over a quarter of a second,
/// and half of what a transfer may take.
pub const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of records that are sent before anybody asked for them (SPEC §10.6): what comes along with an offer on a long path, and little
/// enough to have been for nothing.
pub const PUSH_BYTES_MAX: u64 = 64 * 1024;

/// A receiver says so when it has taken this much of a stream.
pub const TAKEN_BYTES: u64 = 1024 * 1024;

/// Chunks of a hole that are hashed and sent, or entered on the disk, together (1 GiB: a fifth of a second). In between,
/// both sides look whether the transfer is over. Where the tree knows zeros, a hole is one run.
pub const HOLE_RUN_CHUNKS: u64 = 4096;

/// Files of fewer bytes are sent whole, whatever the receiver has: on a slow line that takes seconds, on a long one the
/// questions and answers about pieces take as long.
pub const DELTA_BYTES_MIN: u64 = 1024 * 1024;

/// Larger ones too: their chaining values alone (8 MiB here) are kept in memory until the file is complete.
pub const DELTA_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// An old copy this many times smaller than the file is not worth looking at.
pub const DELTA_SHRINK_MAX: u64 = 64;

/// Files that are put together from old copies at once: one for each worker of the sender.
pub const DELTAS_MAX: usize = 2;

/// Average of the first pieces of files up to 2 GiB. A piece costs 12 bytes: 0.04 % of the file.
pub const PIECE_AVERAGE_BYTES: u32 = 32 * 1024;

/// Pieces of a file of which larger averages make no more.
pub const PIECES_AIM: u64 = 64 * 1024;

/// Finer pieces that are asked for at most, on average; of more bytes, coarser ones.
pub const FINE_PIECES_AIM: u64 = 128 * 1024;

/// Stretches in one Refine or Lack.
pub const DELTA_SPANS_MAX: usize = 16_384;

/// Refine and Lack messages of one file that wait for its worker; more hold the control stream back.
pub const DELTA_REQUESTS_WAITING_MAX: usize = 16;
