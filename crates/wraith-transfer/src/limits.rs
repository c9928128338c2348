//! All limits of the transfer protocol (SPEC §10.9), with their reasons.
//!
//! A peer that exceeds one of them is disconnected. No limit depends on values from the peer.

use std::time::Duration;

/// Protocol version in Hello.
pub const VERSION: u64 = 1;

/// Maximum bytes of a close reason (SPEC §5, CLOSE).
pub const REASON_BYTES_MAX: usize = 512;

/// Maximum bytes of one manifest entry (SPEC §10.4): a path and a link target of 4096 each, the
/// fixed fields, and room for fields of later versions.
pub const ENTRY_BYTES_MAX: usize = 9 * 1024;
const _: () = assert!(wraith_files::ENTRY_BYTES_MAX <= ENTRY_BYTES_MAX);

/// Maximum number of entries in a manifest: entry numbers are 32 bits on the wire.
pub const ENTRIES_MAX: u64 = u32::MAX as u64;

/// Maximum bytes of a file name shown in an offer.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum total bytes of the top-level names in an offer, enough for some thousands of names. If
/// the names are longer, the offer lists no names.
pub const OFFER_NAMES_BYTES_MAX: usize = 64 << 10;

/// Maximum number of wanted but unsettled entries at the receiver: about 16 MiB of state. Beyond
/// this number, the receiver stops reading the manifest.
pub const OUTSTANDING_ENTRIES_MAX: usize = 65_536;

/// Maximum bytes of the paths of these entries, so that long names do not multiply the state.
pub const OUTSTANDING_PATH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of entries previewed before the offer is accepted. The same number may be
/// outstanding later, so memory use is the same.
pub const PREVIEW_ENTRIES_MAX: usize = OUTSTANDING_ENTRIES_MAX;

/// Maximum bytes of the paths and link targets of these entries.
pub const PREVIEW_PATH_BYTES_MAX: usize = OUTSTANDING_PATH_BYTES_MAX;

/// Maximum wait for the names of an offer before it is shown without the rest of them.
pub const PREVIEW_TIME: Duration = Duration::from_secs(3);

/// Maximum number of undecided or unsent entries kept by the sender. Twice the receiver's limit, so
/// that an honest receiver and a sender never wait for each other.
pub const KEPT_ENTRIES_MAX: usize = 2 * OUTSTANDING_ENTRIES_MAX;

/// Maximum bytes of the paths of these entries.
pub const KEPT_PATH_BYTES_MAX: usize = 2 * OUTSTANDING_PATH_BYTES_MAX;

/// Number of entries after which a receiver sends its decisions, even while more of the manifest is
/// waiting.
pub const WANT_ENTRIES_MAX: usize = 4096;

/// Maximum number of ranges in one Want message. Beyond this number, the chunks in a part file's
/// smallest gaps between missing chunks are fetched again.
pub const WANT_RANGES_MAX: usize = 16_384;

/// Maximum number of entries in one Exceptions message. The receiver reports missing entries at the
/// latest when twice as many are waiting.
pub const EXCEPTIONS_MAX: usize = 16_384;

/// Maximum number of links kept until all files are in place. Further links are created at once,
/// which is as safe: no file is ever written through a link.
pub const LINKS_KEPT_MAX: usize = 65_536;

/// Maximum bytes of the paths and targets of the kept links ([`LINKS_KEPT_MAX`]). They can be 8 KiB
/// per link.
pub const LINKS_KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of data streams of a sender: one per worker.
pub const DATA_STREAMS_MAX: u64 = 4;

/// Maximum number of parallel connections of one transfer (SPEC §10.13). With the first connection,
/// each side then has four I/O threads. No disk takes more than about 30 Gbit/s.
pub const PARALLEL_MAX: usize = 3;

/// Maximum time to establish a parallel connection. If a firewall blocks it, the transfer continues
/// without it.
pub const PARALLEL_TIMEOUT: Duration = Duration::from_secs(3);

/// Minimum rate in bytes per second for parallel connections: two thirds of the capacity of one I/O
/// thread with small datagrams. At a lower rate, the path itself is full. Several connections would
/// then only take more than their share of the path.
pub const PARALLEL_RATE: u64 = 400_000_000;

/// Maximum round-trip time for parallel connections, at any rate: longer paths are shared with
/// other traffic.
pub const PARALLEL_RTT_MAX: Duration = Duration::from_millis(5);

/// Minimum bytes that must be left. The first connection moves that much while the additional ones
/// are established and find their rate.
pub const PARALLEL_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// Maximum number of files with some but not all chunks at the receiver (open part files). A sender
/// interleaves no more than one per worker; twice that leaves room for the ends of files still on
/// the way.
pub const OPEN_FILES_MAX: usize = 16;

/// Maximum number of descriptors of complete files without their names: one each, three for a large
/// file. As many again are being named meanwhile. More would hardly be faster.
pub const UNNAMED_DESCRIPTORS_MAX: usize = 256;

/// These files have at most this part of the process's descriptors.
pub const UNNAMED_DESCRIPTORS_DIVISOR: u64 = 4;

/// Maximum bytes of these files, so that a batch is short enough to be written back while the next
/// one arrives.
pub const UNNAMED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Minimum bytes of a received piece that is kept in place. Smaller pieces are copied together with
/// their neighbours. Otherwise a peer that sends single bytes could cause 256 Ki allocations for a
/// 256 KiB chunk, or more slices than `pwritev` accepts.
pub const SMALL_PIECE_BYTES: usize = 8 * 1024;

/// Most bytes by which a manifest may exceed its offer: a sixteenth of the offer up to this number,
/// plus [`OFFER_GROWTH_BYTES_MIN`]. Trees may grow while a question waits for its answer.
pub const OFFER_GROWTH_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes by which a manifest may exceed any offer: some log files and thumbnails.
pub const OFFER_GROWTH_BYTES_MIN: u64 = 1024 * 1024;

/// Most entries by which a manifest may exceed its offer: a sixteenth of the offer up to this
/// number, plus [`OFFER_GROWTH_ENTRIES_MIN`].
pub const OFFER_GROWTH_ENTRIES_MAX: u64 = 1024;

/// Entries by which a manifest may exceed any offer.
pub const OFFER_GROWTH_ENTRIES_MIN: u64 = 16;

/// If a peer moves less than [`STALL_BYTES`] in this time while data is awaited, it is considered
/// dead or stuck.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Minimum bytes that a live peer moves within [`STALL_TIMEOUT`] (about 1 kbit/s).
pub const STALL_BYTES: u64 = 16 * 1024;

/// Maximum time until the first messages and streams arrive.
pub const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time until an offer arrives: the sender may have to walk a large tree first.
pub const OFFER_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum time the receiver waits for the sender to confirm the receipt. All data is on disk by
/// then.
pub const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of chunks (64 MiB) after which a sender that reads without sending reports progress.
pub const PULSE_CHUNKS: u64 = 256;

/// Maximum bytes of a stream that a sender keeps until the receiver has confirmed them. Enough for
/// 1 Gbit/s over a quarter of a second, and half of a transfer's memory.
pub const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum bytes of records sent before they are requested (SPEC §10.6). They fit along with an
/// offer on a long path, and are few enough to be wasted.
pub const PUSH_BYTES_MAX: u64 = 64 * 1024;

/// Number of bytes of a stream after which a receiver reports how much it has taken.
pub const TAKEN_BYTES: u64 = 1024 * 1024;

/// Number of chunks of a hole that are hashed and sent, or written, together (1 GiB: a fifth of a
/// second). In between, both sides check whether the transfer is over. Where the tree knows zeros,
/// a hole is one run.
pub const HOLE_RUN_CHUNKS: u64 = 4096;

/// Minimum bytes of a file for the delta method. Smaller files are sent whole, which takes seconds
/// on a slow line. On a line with a long round trip, the exchange about pieces takes as long as
/// that.
pub const DELTA_BYTES_MIN: u64 = 1024 * 1024;

/// Maximum bytes of a file for the delta method. Only its chaining values (8 MiB at this size) are
/// kept in memory until the file is complete.
pub const DELTA_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// An old copy that is smaller than the file by more than this factor is not used.
pub const DELTA_SHRINK_MAX: u64 = 64;

/// Maximum number of files assembled from old copies at once: one per worker of the sender.
pub const DELTAS_MAX: usize = 2;

/// Average length in bytes of the first pieces of files up to 2 GiB. A piece costs 12 bytes: 0.04 %
/// of the file.
pub const PIECE_AVERAGE_BYTES: u32 = 32 * 1024;

/// Target number of pieces of a larger file; their average length grows with the file.
pub const PIECES_AIM: u64 = 64 * 1024;

/// Target number of finer pieces; with more unmatched bytes, their average length grows.
pub const FINE_PIECES_AIM: u64 = 128 * 1024;

/// Maximum number of ranges in one Refine or Lack message.
pub const DELTA_SPANS_MAX: usize = 16_384;

/// Maximum number of Refine and Lack messages of one file that wait for its worker. More of them
/// hold the control stream back.
pub const DELTA_REQUESTS_WAITING_MAX: usize = 16;
