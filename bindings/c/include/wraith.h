// wraith for C: keys, messages and files. Generated from crates/wraith-c by `cargo run -p wraith-c-header`; do not edit.
//
// Rules for all functions:
// - They return a wraith_status_t, except wraith_version and wraith_abi. wraith_last_error returns the message of a failure.
// - A handle is a number; 0 is never valid. A freed handle, or one of another kind, always gives WRAITH_INVALID_HANDLE.
//   Each handle is freed once with the function of its kind; freeing it while another thread uses it is allowed.
// - Every function may be called from any thread. Concurrent calls on one handle run one at a time; the directions of a
//   stream are independent, and wraith_stream_reset and wraith_stream_stop end the calls that wait.
// - `(data, len)` is input, which is read until the call returns and never kept. NULL is allowed if the length is 0, and
//   gives WRAITH_INVALID_INPUT otherwise.
// - `(out, out_cap, out_len)` is a buffer of the caller. `*out_len` receives the number of bytes written. With
//   WRAITH_BUFFER_TOO_SMALL it receives the number needed, and nothing else has changed: the same call with a larger
//   buffer does what this one would have done. Output may overlap input.
// - Text is UTF-8, with a length and without a NUL.
// - A struct of options starts with its size; zeros in all other fields select the defaults. It may be NULL.

#ifndef WRAITH_H
#define WRAITH_H

#include <stddef.h>
#include <stdint.h>

// Maximum number of messages of one call.
#define WRAITH_BATCH_MAX 65536

// For `receivers`: any number, until the offer is cancelled.
#define WRAITH_ANY_NUMBER UINT32_MAX

// Bytes of a hash.
#define WRAITH_HASH_BYTES 32

// Bytes of a NodeId.
#define WRAITH_NODE_ID_BYTES 32

// Characters of a NodeId as text.
#define WRAITH_NODE_ID_TEXT 52

// Bytes of a seed.
#define WRAITH_SEED_BYTES 32

// Bytes of a signature.
#define WRAITH_SIGNATURE_BYTES 64

// ABI number of this header. A program must not use a library with another number.
#define WRAITH_ABI 1

// Minimum `room` for a message of several pieces, in bytes.
#define WRAITH_PIECE_MIN 18

// Maximum length of a handshake message, in bytes.
#define WRAITH_HANDSHAKE_MESSAGE_MAX 65535

// Maximum payload of a handshake message, in bytes.
#define WRAITH_HANDSHAKE_PAYLOAD_MAX 61440

// Buffer size for a bundle, in bytes.
#define WRAITH_BUNDLE_MAX 1417

// Maximum number of one-time prekeys.
#define WRAITH_ONE_TIME_MAX 1000

// Minimum overhead of a message over its text, in bytes.
#define WRAITH_RATCHET_OVERHEAD 90

// Overhead of a box over its text, in bytes.
#define WRAITH_SEALED_BOX_OVERHEAD 65

// Overhead of a message over its text, in bytes.
#define WRAITH_SESSION_OVERHEAD 24

// Buffer size for a saved session, in bytes.
#define WRAITH_SESSION_SAVED_MAX 704

// For `timeout_ms`: no time limit.
#define WRAITH_FOREVER UINT64_MAX

// Result of a call. Later versions add numbers but never change one.
enum wraith_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Success.
    WRAITH_OK = 0,
    // An argument or option is invalid, such as a path, name, code, ticket, key or length.
    WRAITH_INVALID_INPUT = 1,
    // The handle is 0, was freed, or is of another kind.
    WRAITH_INVALID_HANDLE = 2,
    // The caller's buffer is too small. `*out_len` is the required size, and nothing has
    // changed.
    WRAITH_BUFFER_TOO_SMALL = 3,
    // The call is not allowed in this state. For example, the handshake expects the peer's
    // message, or the saved session has no reserved numbers left.
    WRAITH_INVALID_STATE = 4,
    // A message, signature or saved state does not authenticate: another party made it, or it
    // was changed. Nothing has changed.
    WRAITH_UNAUTHENTIC = 5,
    // The message was received before. Nothing has changed.
    WRAITH_REPLAYED = 6,
    // A limit is reached: handles, messages of a session, prekeys, or a configured limit.
    WRAITH_EXHAUSTED = 7,
    // The vault has failed.
    WRAITH_VAULT_FAILED = 8,
    // The system has no randomness.
    WRAITH_NO_RANDOMNESS = 9,
    // The operation is still running after the time limit. It continues.
    WRAITH_TIMED_OUT = 10,
    // No address answered, no peer came, or the named item does not exist.
    WRAITH_NOT_FOUND = 11,
    // The user of the other side declined.
    WRAITH_REFUSED = 12,
    // After a reconnect, the sender made another offer than the accepted one.
    WRAITH_OFFER_CHANGED = 13,
    // The words are wrong, the code is used or expired, or the ticket names no offer of the
    // sender.
    WRAITH_WRONG_CODE = 14,
    // The connection was lost and not restored in time. The same transfer can be resumed.
    WRAITH_NETWORK_LOST = 15,
    // A disk is full, read-only or unreadable. The same transfer can be resumed.
    WRAITH_DISK = 16,
    // Data does not match its hash.
    WRAITH_VERIFICATION = 17,
    // The peer sent a name that could escape the target folder.
    WRAITH_UNSAFE_NAME = 18,
    // The transfer is complete except for some files that could not be transferred.
    WRAITH_PARTIAL = 19,
    // The peer violated the protocol.
    WRAITH_PROTOCOL = 20,
    // One of the two sides cancelled. The same transfer can be resumed.
    WRAITH_CANCELLED = 21,
    // The receiver postponed its answer to the offer, which stays valid.
    WRAITH_POSTPONED = 22,
    // Another program with the same identity receives the offer; its user accepted first.
    WRAITH_RECEIVED_ELSEWHERE = 23,
    // The vault already has a record of this name, or a newer one: it is in use elsewhere, or
    // was rolled back. Continuing would reuse keys.
    WRAITH_CONFLICT = 24,
    // The message is so late that it is no longer opened. It may have been received before.
    // Nothing has changed.
    WRAITH_TOO_OLD = 25,
    // The reader or writer of a byte stream failed. For a target in memory, the content exceeds
    // its limit.
    WRAITH_STREAM = 26,
    // The program of one side panicked.
    WRAITH_PROGRAM_PANICKED = 27,
    // The peer has reset the stream of a raw connection.
    WRAITH_STREAM_RESET = 28,
    // The peer has stopped reading the stream of a raw connection.
    WRAITH_STREAM_STOPPED = 29,
    // The raw connection has ended.
    WRAITH_CONNECTION_CLOSED = 30,
    // Any other error.
    WRAITH_OTHER = 98,
    // A bug in the library. The affected object is unusable; all others still work.
    WRAITH_PANICKED = 99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_status_t wraith_status_t;
#else
typedef int32_t wraith_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of an event. Later versions add numbers; ignore unknown ones.
enum wraith_event_kind_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // An event without a number of its own.
    WRAITH_EVENT_OTHER = 0,
    // A receiver proved that it has the code's words, and got the ticket.
    // `text`: Meeting place.
    // `peer`: NodeId of the receiver.
    WRAITH_EVENT_CODE_USED = 1,
    // A receiver tried the code with wrong words. The code is invalid from now on.
    // `text`: Meeting place.
    WRAITH_EVENT_CODE_BURNED = 2,
    // A long code is available, in addition to the short code or instead of it.
    // `text`: The code.
    WRAITH_EVENT_LONG_CODE = 3,
    // The code has expired without a receiver.
    WRAITH_EVENT_CODE_EXPIRED = 4,
    // A meeting place is unreachable; the node retries.
    // `path`: The meeting place.
    // `text`: The reason.
    WRAITH_EVENT_PLACE_LOST = 5,
    // A meeting place is reachable again.
    // `path`: The meeting place.
    WRAITH_EVENT_PLACE_BACK = 6,
    // The peer was found.
    WRAITH_EVENT_PEER_FOUND = 7,
    // Both sides have authenticated each other.
    // `peer`: NodeId of the peer.
    // `text`: Address of the peer.
    WRAITH_EVENT_CONNECTED = 8,
    // The connection changed its network path, or stays on a relay for the given reason.
    // `peer`: NodeId of the peer.
    // `text`: Address of the peer on its current path.
    // `path`: Why no path better than the relay was found, or empty if the path has changed.
    WRAITH_EVENT_PATH = 9,
    // The sender described its offer.
    // `path`: Name of the first entry.
    // `count`: Number of files.
    // `bytes`: Total size of the files, in bytes.
    WRAITH_EVENT_OFFERED = 10,
    // The receiver accepted.
    WRAITH_EVENT_ACCEPTED = 11,
    // A file is finished.
    // `path`: Path of the file in the offer, escaped for a terminal.
    // `detail`, a `wraith_file_status_t`: Result.
    // `bytes`: Size in bytes.
    WRAITH_EVENT_FILE = 12,
    // A warning that does not stop the transfer.
    // `path`: The affected path, or an empty string.
    // `text`: Text of the warning.
    WRAITH_EVENT_NOTE = 13,
    // Progress: `count` files and `bytes` bytes are settled.
    WRAITH_EVENT_PROGRESS = 14,
    // The connection was lost. This side reconnects or waits for the peer.
    // `detail`, a `wraith_lost_reason_t`: The reason.
    // `text`: The reason, as text.
    // `count`: Seconds until this side gives up.
    WRAITH_EVENT_CONNECTION_LOST = 15,
    // A receiver has confirmed all files that could be sent.
    // `peer`: NodeId of the receiver.
    // `bytes`: Bytes of the files that it has now.
    // `count`: Number of the files that it has now.
    WRAITH_EVENT_SENT = 16,
    // The receiver previewed the offer and postponed its answer; the offer stays valid.
    WRAITH_EVENT_OFFER_POSTPONED = 17,
    // This reader was too slow, and events were dropped.
    // `count`: Number of dropped events.
    WRAITH_EVENT_LAGGED = 18,
    // Last event: the transfer is complete and confirmed.
    WRAITH_EVENT_DONE = 19,
    // Last event: the transfer failed. The transfer's result is the same error.
    // `status` and `text`: The reason.
    WRAITH_EVENT_FAILED = 20,
    // This side has used the code before; the transfer resumes.
    WRAITH_EVENT_RESUMED = 21,
    // A peer used a ticket that a code had delivered to another machine. It was rejected.
    WRAITH_EVENT_UNAUTHORIZED_PEER = 22,
    // The code accepts no new receivers any more; running transfers continue.
    // `text`: The reason.
    WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS = 23,
    // One of several receivers has all files; the offer waits for the next one.
    // `count`: Number of receivers that have all files.
    // `detail`: Number of wanted receivers, or 0 if unlimited.
    WRAITH_EVENT_SERVED = 24,
    // A receiver reconnected. The new connection replaces the earlier one.
    WRAITH_EVENT_RECEIVER_RECONNECTED = 25,
    // One of several receivers did not get all files. The others are not affected.
    // `status` and `text`: The reason.
    WRAITH_EVENT_RECEIVER_FAILED = 26,
    // A user or program stopped the transfer. It was not the network.
    // `detail`, a `wraith_role_t`: The side that stopped.
    WRAITH_EVENT_STOPPED = 27,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_event_kind_t wraith_event_kind_t;
#else
typedef uint32_t wraith_event_kind_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Result of one file.
enum wraith_file_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Transferred and verified, in whole or from where an earlier transfer stopped.
    WRAITH_FILE_DONE = 0,
    // The receiver already had this exact file.
    WRAITH_FILE_ALREADY_HERE = 1,
    // A different file has its path, and the conflict policy kept that one.
    WRAITH_FILE_SKIPPED = 2,
    // The file changed at the sender while it was read. Send it again.
    WRAITH_FILE_CHANGED = 3,
    // The sender could not read the file.
    WRAITH_FILE_UNREADABLE = 4,
    // The partial file of an earlier transfer did not match any more. Receive it again.
    WRAITH_FILE_STALE = 5,
    // The receiver could not move the file to its destination.
    WRAITH_FILE_BLOCKED = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_file_status_t wraith_file_status_t;
#else
typedef uint32_t wraith_file_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a connection was lost.
enum wraith_lost_reason_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Any other reason.
    WRAITH_LOST_OTHER = 0,
    // No packet arrived from the peer for some seconds.
    WRAITH_LOST_IDLE_TIMEOUT = 1,
    // The peer did not answer the handshake.
    WRAITH_LOST_NO_ANSWER = 2,
    // Packets arrived, but no data.
    WRAITH_LOST_STALLED = 3,
    // The peer did not send a message of the transfer protocol in time.
    WRAITH_LOST_NO_MESSAGE = 4,
    // The path carries only packets that are too small.
    WRAITH_LOST_PATH_MTU = 5,
    // The peer ended the connection without a reason that ends the transfer.
    WRAITH_LOST_BY_PEER = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_lost_reason_t wraith_lost_reason_t;
#else
typedef uint32_t wraith_lost_reason_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A side of a transfer.
enum wraith_role_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The side that offers.
    WRAITH_SENDER = 1,
    // The side that fetches.
    WRAITH_RECEIVER = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_role_t wraith_role_t;
#else
typedef uint32_t wraith_role_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The answer to an offer.
enum wraith_answer_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Postpone: the offer stays valid.
    WRAITH_POSTPONE = 0,
    // Fetch the offer.
    WRAITH_ACCEPT = 1,
    // Decline, and notify the sender.
    WRAITH_REFUSE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_answer_t wraith_answer_t;
#else
typedef int32_t wraith_answer_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The recipient of an offer.
enum wraith_offer_to_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Any receiver with the code made for the offer.
    WRAITH_OFFER_BY_CODE = 0,
    // Any receiver with the ticket.
    WRAITH_OFFER_BY_TICKET = 1,
    // The contact named in the options.
    WRAITH_OFFER_TO_CONTACT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_offer_to_t wraith_offer_to_t;
#else
typedef uint32_t wraith_offer_to_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Policy for a name that already exists.
enum wraith_on_conflict_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Give the new file another name.
    WRAITH_RENAME = 0,
    // Keep the existing file and skip the new one.
    WRAITH_SKIP = 1,
    // Replace the existing file, once all of the new one is verified.
    WRAITH_OVERWRITE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_on_conflict_t wraith_on_conflict_t;
#else
typedef uint32_t wraith_on_conflict_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The next step of a handshake.
enum wraith_turn_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // This side writes a message.
    WRAITH_TURN_WRITE = 1,
    // This side reads a message.
    WRAITH_TURN_READ = 2,
    // The handshake is complete: call `wraith_handshake_session`.
    WRAITH_TURN_OVER = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_turn_t wraith_turn_t;
#else
typedef uint32_t wraith_turn_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The peers that are invited to a service.
enum wraith_callers_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Peers that use the code made for the service.
    WRAITH_CALLERS_BY_CODE = 0,
    // Every peer that has the ticket.
    WRAITH_CALLERS_BY_TICKET = 1,
    // All contacts of the node that know the name in the options.
    WRAITH_CALLERS_CONTACTS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_callers_t wraith_callers_t;
#else
typedef uint32_t wraith_callers_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a connection ended. Later versions add numbers; treat unknown ones as
// `WRAITH_CLOSED_OTHER`.
enum wraith_close_cause_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Any other cause.
    WRAITH_CLOSED_OTHER = 0,
    // This side closed or freed it.
    WRAITH_CLOSED_HERE = 1,
    // The peer closed it, with a code and a text.
    WRAITH_CLOSED_BY_PEER = 2,
    // No packet arrived from the peer for some seconds.
    WRAITH_CLOSED_IDLE_TIMEOUT = 3,
    // The path carries only packets that are too small.
    WRAITH_CLOSED_PATH_MTU = 4,
    // The peer violated the protocol.
    WRAITH_CLOSED_PROTOCOL = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_close_cause_t wraith_close_cause_t;
#else
typedef uint32_t wraith_close_cause_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A node.
typedef uint64_t wraith_node_t;

// A raw connection.
typedef uint64_t wraith_connection_t;

// A stream of a raw connection, in both directions.
typedef uint64_t wraith_stream_t;

// Borrowed bytes: `len` bytes at `data`, which may be NULL if `len` is 0. Text is UTF-8 without a
// terminating NUL.
typedef struct wraith_bytes_t {
    // Pointer to the first byte.
    const uint8_t *data;
    // Number of bytes.
    size_t len;
} wraith_bytes_t;

// Options of a service. All zeros but `struct_size` is a service by code, for one peer.
typedef struct wraith_serve_options_t {
    // `sizeof(wraith_serve_options_t)`.
    size_t struct_size;
    // A `wraith_callers_t`.
    uint32_t callers;
    // Number of peers that can use the code, or `WRAITH_ANY_NUMBER`; 0 means 1. Each of them
    // can connect any number of times.
    uint32_t uses;
    // Lifetime of the code in seconds; 0 for one hour, or one day for any number of peers.
    uint32_t expires_s;
    // 1 to give the service a socket of its own. Without this, the offers and services of the
    // node share one, so an observer of the network can see that they belong together.
    uint32_t isolated;
    // Name of a service for contacts, which both sides know: 1 to 255 bytes.
    struct wraith_bytes_t name;
    // Listening address of a socket for this service alone, `IP:PORT`; empty for the socket of
    // the node, where contacts look for it.
    struct wraith_bytes_t bind;
} wraith_serve_options_t;

// A service.
typedef uint64_t wraith_service_t;

// An event. Fields that its kind does not use are 0, empty or NULL.
typedef struct wraith_event_t {
    // A `wraith_event_kind_t`.
    uint32_t kind;
    // The result, for `WRAITH_EVENT_FAILED` and `WRAITH_EVENT_RECEIVER_FAILED`.
    wraith_status_t status;
    // Meaning depends on the kind.
    uint32_t detail;
    // Meaning depends on the kind.
    uint64_t bytes;
    // Meaning depends on the kind.
    uint64_t count;
    // A path, name or place: UTF-8, escaped for a terminal.
    struct wraith_bytes_t path;
    // Text for people.
    struct wraith_bytes_t text;
    // The other side's NodeId (32 bytes), or empty.
    struct wraith_bytes_t peer;
} wraith_event_t;

// Summary of an offer, as the sender declares it.
typedef struct wraith_offer_info_t {
    // The sender's NodeId (32 bytes); authenticated.
    struct wraith_bytes_t sender;
    // The first name, escaped for a terminal. For display only.
    struct wraith_bytes_t name;
    // Number of regular files.
    uint64_t files;
    // Number of folders.
    uint64_t folders;
    // Number of symbolic links.
    uint64_t links;
    // Total bytes of all files.
    uint64_t bytes;
    // Bytes of the largest file.
    uint64_t largest;
    // Number of entries that cannot be sent. The other counts do not include them.
    uint64_t left_out;
    // 1 for one byte stream. If its size is unknown, `bytes` is 0.
    uint32_t is_stream;
} wraith_offer_info_t;

// Callbacks of a transfer. All functions but `ask` may be NULL.
//
// They are called from one thread of the library that belongs to this transfer alone, never two at
// a time, and in order. They may block. The transfer continues meanwhile, except that nothing is
// written before `ask` has answered. They may call this library, also for the same transfer; only
// `wraith_transfer_wait` for it is refused there. No C++ exception and no `longjmp` may leave
// them. Their pointer arguments are valid until they return.
typedef struct wraith_callbacks_t {
    // `sizeof(wraith_callbacks_t)`.
    size_t struct_size;
    // Passed to each function.
    void *user;
    // Reports an event. At most 1024 events are queued; a slower reader misses the oldest and gets
    // their number. The last event is never missed.
    void (*event)(void *user, const struct wraith_event_t *event);
    // Decides whether to fetch an offer; returns a `wraith_answer_t`. Called once for each fetch.
    // An unknown value counts as later.
    int32_t (*ask)(void *user, const struct wraith_offer_info_t *offer);
    // The last call of all; `user` is not used after it. It comes after the last event, or after
    // `wraith_transfer_free`. It does not come for a transfer that could not be started.
    void (*release)(void *user);
} wraith_callbacks_t;

// Options of a fetch. All zeros but `struct_size` asks first, and renames on conflicts.
typedef struct wraith_fetch_options_t {
    // `sizeof(wraith_fetch_options_t)`.
    size_t struct_size;
    // A `wraith_on_conflict_t`.
    uint32_t on_conflict;
    // 1 to accept any offer without asking.
    uint32_t accept_all;
    // 1 to end before everything is on stable storage.
    uint32_t no_sync;
    // 1 to preserve all permission bits.
    uint32_t keep_modes;
    // Rate limit in bytes per second; 0 for no limit.
    uint64_t bytes_per_second;
    // Time limit for finding the sender, in milliseconds; 0 for the default.
    uint64_t timeout_ms;
    // Interval of `WRAITH_EVENT_PROGRESS` in milliseconds; 0 for none.
    uint64_t progress_ms;
} wraith_fetch_options_t;

// An offer or a fetch.
typedef uint64_t wraith_transfer_t;

// An identity with its secret key.
typedef uint64_t wraith_identity_t;

// Options of a node. All zeros but `struct_size` is a new identity that meets peers on the
// local network, stores nothing, and uses no server.
typedef struct wraith_node_options_t {
    // `sizeof(wraith_node_options_t)`.
    size_t struct_size;
    // Its identity; 0 for the identity of its state, or a new one.
    wraith_identity_t identity;
    // Folder for identity, contacts and unfinished transfers; empty to store nothing.
    struct wraith_bytes_t state_folder;
    // Rendezvous server, `HOST` or `HOST:PORT`; empty for none.
    struct wraith_bytes_t rendezvous;
    // 1 to turn off discovery on the local network.
    uint32_t lan_off;
    // 1 to use the Mainline DHT as well.
    uint32_t dht;
} wraith_node_options_t;

// Options of an offer. All zeros but `struct_size` is an offer by code, to one receiver.
typedef struct wraith_offer_options_t {
    // `sizeof(wraith_offer_options_t)`.
    size_t struct_size;
    // A `wraith_offer_to_t`.
    uint32_t to;
    // Number of receivers, or `WRAITH_ANY_NUMBER`; 0 means 1.
    uint32_t receivers;
    // Name of the contact, for `WRAITH_OFFER_TO_CONTACT`.
    struct wraith_bytes_t contact;
    // Listening address, `IP:PORT`; empty for all local addresses.
    struct wraith_bytes_t bind;
    // Rate limit in bytes per second; 0 for no limit.
    uint64_t bytes_per_second;
    // Lifetime of the code in seconds; 0 for one hour.
    uint64_t expires_s;
    // Time limit for the first connection, in milliseconds; 0 for the default.
    uint64_t timeout_ms;
    // Interval of `WRAITH_EVENT_PROGRESS` in milliseconds; 0 for none.
    uint64_t progress_ms;
} wraith_offer_options_t;

// Progress of a transfer, or its final figures.
typedef struct wraith_progress_t {
    // Bytes settled: transferred, already present, or of failed files.
    uint64_t bytes;
    // Bytes of all files in the offer.
    uint64_t bytes_total;
    // Number of settled files.
    uint64_t files;
    // Number of files in the offer.
    uint64_t files_total;
    // Bytes transferred per second, averaged over the last five seconds.
    uint64_t bytes_per_second;
    // Number of receivers that confirmed everything; set when an offer has ended.
    uint64_t receivers;
} wraith_progress_t;

// An incremental hash computation.
typedef uint64_t wraith_hasher_t;

// A splitter of messages.
typedef uint64_t wraith_splitter_t;

// Limits of a reassembler. 0 stands for the default.
typedef struct wraith_reassembly_limits_t {
    // `sizeof(wraith_reassembly_limits_t)`.
    size_t struct_size;
    // Maximum message length in bytes. Default: 1 MiB.
    size_t message_bytes;
    // Maximum bytes held for incomplete messages, plus 64 bytes per piece. Default: 2 MiB, or
    // twice the maximum message length if that is more. The oldest message is evicted.
    size_t held_bytes;
    // Maximum number of incomplete messages. Default: 16.
    size_t held_messages;
} wraith_reassembly_limits_t;

// A reassembler of messages.
typedef uint64_t wraith_reassembler_t;

// Options of a handshake.
typedef struct wraith_handshake_options_t {
    // `sizeof(wraith_handshake_options_t)`.
    size_t struct_size;
    // 1 for the side that writes first.
    uint32_t is_initiator;
    // Must be 0.
    uint32_t reserved;
    // Protocol name, such as `Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s`, which is the
    // default if empty. Supported: XX, XK, IK, NK, IX; psk0 to psk3; with or without `hfs` and
    // `+MLKEM768`; AESGCM, ChaChaPoly; SHA256, SHA512, BLAKE2s, BLAKE2b.
    struct wraith_bytes_t protocol;
    // The identity of this side, which the handshake sends and proves. 0 for none.
    wraith_identity_t identity;
    // Instead of an identity: 32 secret bytes, a plain Noise key.
    struct wraith_bytes_t local_key;
    // The required NodeId (32 bytes) of the other side. In patterns with a pre-known static
    // key, it is that key.
    struct wraith_bytes_t peer;
    // Instead of `peer`: the other side's public Noise key (32 bytes), in patterns with a
    // pre-known static key.
    struct wraith_bytes_t remote_key;
    // The pre-shared key (32 bytes); set if and only if the protocol name has a psk.
    struct wraith_bytes_t psk;
    // Prologue: data beside the protocol that must be equal on both sides. It is not sent.
    struct wraith_bytes_t prologue;
} wraith_handshake_options_t;

// One side of a handshake.
typedef uint64_t wraith_handshake_t;

// A session.
typedef uint64_t wraith_session_t;

// The prekeys of one identity, with their secrets.
typedef uint64_t wraith_prekeys_t;

// One side of a conversation.
typedef uint64_t wraith_ratchet_t;

// The result for one message of a batch, and the position of its bytes in the buffer.
typedef struct wraith_ratchet_result_t {
    // `WRAITH_OK`, or why the message was not decrypted. A failed message changes nothing.
    wraith_status_t status;
    // Offset of its bytes in the buffer.
    size_t offset;
    // Number of its bytes.
    size_t len;
} wraith_ratchet_result_t;

// The result for one message of a batch.
typedef struct wraith_opened_t {
    // `WRAITH_OK`, or why the message was not opened. A failed message changes nothing.
    wraith_status_t status;
    // The message number.
    uint64_t number;
    // Offset of its text in the buffer.
    size_t offset;
    // Length of its text.
    size_t len;
} wraith_opened_t;

// A vault.
typedef uint64_t wraith_vault_t;

// A store for records of sessions, conversations and prekeys, implemented by the caller, such as a
// keychain or a database. Each function returns a `wraith_status_t`.
//
// The functions may be called from any thread, and concurrently for different names. They may call
// this library, but not for the object they are called for; that returns `WRAITH_INVALID_STATE`.
//
// The safety of all stored objects depends on these rules:
//
// - A record is replaced as a whole or not at all.
// - Of two stores with the same generation, one fails.
// - After a store with `durability` 1, no load returns an older record.
//
// A record contains keys, so it should be encrypted.
typedef struct wraith_vault_callbacks_t {
    // `sizeof(wraith_vault_callbacks_t)`.
    size_t struct_size;
    // Passed to each function.
    void *user;
    // Replaces the record of this name by `record`. Returns `WRAITH_CONFLICT` if the stored record
    // has this generation or a later one. `durability` is 0 if the record must survive the
    // process, and 1 if it must survive a power cut.
    int32_t (*store)(void *user,
                     struct wraith_bytes_t name,
                     uint64_t generation,
                     struct wraith_bytes_t record,
                     uint32_t durability);
    // Copies the record of this name to `out` and its length to `*out_len`. Returns
    // `WRAITH_NOT_FOUND` if there is none. Returns `WRAITH_BUFFER_TOO_SMALL` and the length if
    // there is too little room; the function is then called again.
    int32_t (*load)(void *user,
                    struct wraith_bytes_t name,
                    uint8_t *out,
                    size_t out_cap,
                    size_t *out_len);
    // Removes the record of this name, if there is one.
    int32_t (*remove)(void *user, struct wraith_bytes_t name);
    // Returns the latest generation ever stored durably under this name, from a memory that is not
    // restored together with the records. Opened messages are then stored durably. Returns
    // `WRAITH_NOT_FOUND` if it is unknown. May be NULL; a rollback of the vault is then not
    // detected.
    int32_t (*latest)(void *user, struct wraith_bytes_t name, uint64_t *out);
    // The last call of all. May be NULL.
    void (*release)(void *user);
} wraith_vault_callbacks_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts to search for the service behind `source`, a code or ticket of a service, and returns
// at once: `wraith_connection_wait` waits until the connection is open. The search takes at
// most `timeout_ms` milliseconds; 0 for the default, which is 10 s, or 30 s with the DHT.
wraith_status_t wraith_connect(wraith_node_t node,
                               const uint8_t *source,
                               size_t source_len,
                               uint64_t timeout_ms,
                               wraith_connection_t *out);

// Like `wraith_connect`, for the service `service` of a contact of this name. The contact must
// have this node among its contacts.
wraith_status_t wraith_connect_to_contact(wraith_node_t node,
                                          const uint8_t *name,
                                          size_t name_len,
                                          const uint8_t *service,
                                          size_t service_len,
                                          uint64_t timeout_ms,
                                          wraith_connection_t *out);

// Waits until the connection is open, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`).
//
// Returns `WRAITH_OK`, the status of its failure, or `WRAITH_TIMED_OUT` if the search still
// runs. An accepted connection is open from the beginning. Other calls that wait do the same
// first; those that do not wait return `WRAITH_INVALID_STATE` before it is open.
wraith_status_t wraith_connection_wait(wraith_connection_t connection, uint64_t timeout_ms);

// Returns the authenticated NodeId of the peer: 32 bytes.
wraith_status_t wraith_connection_peer(wraith_connection_t connection,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Returns the current address of the peer, or of the relay in between, as text.
wraith_status_t wraith_connection_remote(wraith_connection_t connection,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len);

// Returns the kind of the current path: `loopback`, `lan`, `direct`, `relay` or `custom`.
wraith_status_t wraith_connection_route(wraith_connection_t connection,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len);

// Opens a stream. Waits while the peer's limit of streams is reached, for at most `timeout_ms`
// milliseconds (or `WRAITH_FOREVER`). The peer sees the stream with its first bytes.
wraith_status_t wraith_connection_open_stream(wraith_connection_t connection,
                                              uint64_t timeout_ms,
                                              wraith_stream_t *out);

// Waits for the next stream that the peer opens, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`).
wraith_status_t wraith_connection_accept_stream(wraith_connection_t connection,
                                                uint64_t timeout_ms,
                                                wraith_stream_t *out);

// Returns the size of the largest datagram that can be sent now; 0 if the peer accepts none.
// It is 627 bytes or more unless the peer accepts less, and changes with the path.
wraith_status_t wraith_connection_max_datagram(wraith_connection_t connection, size_t *out);

// Queues an unreliable datagram. `WRAITH_INVALID_INPUT` if it is too large now, and
// `WRAITH_EXHAUSTED` if 256 of them wait already.
wraith_status_t wraith_connection_send_datagram(wraith_connection_t connection,
                                                const uint8_t *datagram,
                                                size_t datagram_len);

// Waits for the next datagram of the peer, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`). At most 256 are queued; beyond that, the oldest are dropped.
wraith_status_t wraith_connection_read_datagram(wraith_connection_t connection,
                                                uint64_t timeout_ms,
                                                uint8_t *out,
                                                size_t out_cap,
                                                size_t *out_len);

// Closes the connection now: unsent and unread bytes are dropped. To be sure that a stream
// arrived, wait with `wraith_stream_acked` first. The peer gets `code`, which starts at 0x100,
// and at most 512 bytes of `reason`. A connection that is not open yet is not searched for any
// more.
wraith_status_t wraith_connection_close(wraith_connection_t connection,
                                        uint64_t code,
                                        const uint8_t *reason,
                                        size_t reason_len);

// Waits for the end of the connection, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`).
//
// `*cause` becomes a `wraith_close_cause_t`. If the peer has closed the connection, `*code` is
// its code, and the bytes are its text, which may contain anything; otherwise `*code` is 0,
// and there are no bytes. `cause` and `code` may be NULL. If the connection was never open,
// the call returns the status of that failure.
wraith_status_t wraith_connection_closed(wraith_connection_t connection,
                                         uint64_t timeout_ms,
                                         uint32_t *cause,
                                         uint64_t *code,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len);

// Frees the handle, and ends the search for the service. Once the handles of the connection
// and of all its streams are freed, finished streams are still delivered, and then the
// connection closes with code 0.
wraith_status_t wraith_connection_free(wraith_connection_t connection);

// Starts a service. Returns as soon as its code or ticket is available, and callers can
// connect. `options` may be NULL.
wraith_status_t wraith_serve(wraith_node_t node,
                             const struct wraith_serve_options_t *options,
                             wraith_service_t *out);

// Returns the code of a service, for people to say. `WRAITH_NOT_FOUND` if it has none.
wraith_status_t wraith_service_code(wraith_service_t service,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Returns the ticket of a service by ticket: a secret, valid for any peer that has it.
// `WRAITH_NOT_FOUND` if it has none.
wraith_status_t wraith_service_ticket(wraith_service_t service,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Returns the listening address of a service, `IP:PORT`.
wraith_status_t wraith_service_address(wraith_service_t service,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Returns the names of the meeting places at which peers with the code, or contacts, can find
// the service, one a line. No bytes if there are none.
wraith_status_t wraith_service_places(wraith_service_t service,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Reports the events of a service: of codes, meeting places, relays and paths. The first call
// gets them from the beginning. `callbacks.ask` is not called. The last event comes when the
// service ends, unless it is freed before.
wraith_status_t wraith_service_watch(wraith_service_t service,
                                     const struct wraith_callbacks_t *callbacks);

// Waits for the next connection of an invited peer, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`).
//
// Returns `WRAITH_TIMED_OUT` if none came. `WRAITH_CANCELLED` if the service was closed or
// freed, also meanwhile, or its node was shut down; `WRAITH_WRONG_CODE` if the code is no
// longer valid and no peer has used it. A service keeps at most 64 connections that no call
// has accepted.
wraith_status_t wraith_service_accept(wraith_service_t service,
                                      uint64_t timeout_ms,
                                      wraith_connection_t *out);

// Ends a service gracefully: it accepts no more callers, delivers the finished streams of all
// its connections, also of accepted ones, and closes these connections. Waits for that, at
// most 3 s. The handle must still be freed.
wraith_status_t wraith_service_close(wraith_service_t service);

// Frees the service. It accepts no more callers; its connections stay open.
wraith_status_t wraith_service_free(wraith_service_t service);

// Queues all of `data` for sending. Waits while more than 1 MiB is queued, for at most
// `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `*written` becomes the number of queued
// bytes, also if the call fails; it may be NULL.
//
// `WRAITH_STREAM_STOPPED` if the peer reads no more, `WRAITH_CONNECTION_CLOSED` if the
// connection has ended, `WRAITH_INVALID_STATE` after `wraith_stream_finish` or
// `wraith_stream_reset`.
wraith_status_t wraith_stream_write(wraith_stream_t stream,
                                    const uint8_t *data,
                                    size_t data_len,
                                    uint64_t timeout_ms,
                                    size_t *written);

// Ends the sending direction after the written bytes. The peer can still send. Fails as
// `wraith_stream_write` does.
wraith_status_t wraith_stream_finish(wraith_stream_t stream);

// Waits until the peer has acknowledged all bytes and the end of a finished stream, for at
// most `timeout_ms` milliseconds (or `WRAITH_FOREVER`). Fails as `wraith_stream_write` does.
wraith_status_t wraith_stream_acked(wraith_stream_t stream, uint64_t timeout_ms);

// Resets the sending direction: drops its queued bytes and sends `code` to the peer (at most
// 2^62 - 1; a larger one becomes that). Also ends a write that waits on another thread.
wraith_status_t wraith_stream_reset(wraith_stream_t stream, uint64_t code);

// Returns the next bytes of the peer, at least one and as many as are available and fit. Waits
// for them, for at most `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `WRAITH_OK` with
// `*out_len` 0 is the end of the stream; `out_cap` must not be 0.
//
// `WRAITH_STREAM_RESET` if the peer has reset the stream, `WRAITH_CONNECTION_CLOSED` if the
// connection has ended, `WRAITH_INVALID_STATE` after `wraith_stream_stop`.
wraith_status_t wraith_stream_read(wraith_stream_t stream,
                                   uint64_t timeout_ms,
                                   uint8_t *out,
                                   size_t out_cap,
                                   size_t *out_len);

// Returns all bytes of the peer up to the end of the stream. Waits for them, for at most
// `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `WRAITH_EXHAUSTED` if there are more than
// `out_cap` bytes. Otherwise fails as `wraith_stream_read` does. Bytes that a failed call has
// received stay available to later calls.
wraith_status_t wraith_stream_read_to_end(wraith_stream_t stream,
                                          uint64_t timeout_ms,
                                          uint8_t *out,
                                          size_t out_cap,
                                          size_t *out_len);

// Stops reading: drops received bytes and sends `code` to the peer (at most 2^62 - 1; a larger
// one becomes that), whose writes then fail. Also ends a read that waits on another thread.
wraith_status_t wraith_stream_stop(wraith_stream_t stream, uint64_t code);

// Returns the code of the peer's reset, after a read has returned `WRAITH_STREAM_RESET`;
// `WRAITH_NOT_FOUND` before.
wraith_status_t wraith_stream_reset_code(wraith_stream_t stream, uint64_t *out);

// Returns the code with which the peer stopped reading, after a call has returned
// `WRAITH_STREAM_STOPPED`; `WRAITH_NOT_FOUND` before.
wraith_status_t wraith_stream_stop_code(wraith_stream_t stream, uint64_t *out);

// Frees the stream. A sending direction that was not finished is reset, and a receiving one
// whose end was not read is stopped, each with code 0. Finished bytes are still delivered.
wraith_status_t wraith_stream_free(wraith_stream_t stream);

// Fetches the offer behind `source`, a code or a ticket, into `folder`, which is created when
// the offer is accepted. Returns at once. `callbacks` needs `ask`, unless `options` accepts
// any offer.
wraith_status_t wraith_fetch(wraith_node_t node,
                             const uint8_t *source,
                             size_t source_len,
                             const uint8_t *folder,
                             size_t folder_len,
                             const struct wraith_fetch_options_t *options,
                             const struct wraith_callbacks_t *callbacks,
                             wraith_transfer_t *out);

// Creates a node. `options` may be NULL.
wraith_status_t wraith_node_new(const struct wraith_node_options_t *options, wraith_node_t *out);

// Returns the NodeId: 32 bytes.
wraith_status_t wraith_node_id(wraith_node_t node, uint8_t *out, size_t out_cap, size_t *out_len);

// Adds a contact: `name` stands for the identity `node_id` (32 bytes), which listens at
// `address` (`HOST` or `HOST:PORT`; may be empty). The identity of a name is never replaced.
wraith_status_t wraith_node_add_contact(wraith_node_t node,
                                        const uint8_t *name,
                                        size_t name_len,
                                        const uint8_t *node_id,
                                        size_t node_id_len,
                                        const uint8_t *address,
                                        size_t address_len);

// Cancels all transfers of the node and all searches for services, and waits until their peers
// are notified and received data is stored, at most 5 s. Does not wait for callbacks. Services
// accept no more callers; raw connections stay open. Transfers and services that start later
// fail with `WRAITH_CANCELLED`. A program calls this before it ends; it may be called in a
// callback.
wraith_status_t wraith_node_shutdown(wraith_node_t node);

// Frees the node. Its transfers, services, connections and streams continue until they are
// freed as well. Freeing the last of them waits for at most two seconds until the peers are
// notified.
wraith_status_t wraith_node_free(wraith_node_t node);

// Offers the files and folders at `paths`. Returns as soon as there is a code or ticket to
// show; no file content has been read by then. `options` and `callbacks` may be NULL.
wraith_status_t wraith_offer(wraith_node_t node,
                             const struct wraith_bytes_t *paths,
                             size_t paths_count,
                             const struct wraith_offer_options_t *options,
                             const struct wraith_callbacks_t *callbacks,
                             wraith_transfer_t *out);

// Returns the code of an offer, for people to say. `WRAITH_NOT_FOUND` if it has none; it then
// has a ticket.
wraith_status_t wraith_transfer_code(wraith_transfer_t transfer,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Returns the ticket of an offer by ticket: a secret, valid for any receiver that has it.
// `WRAITH_NOT_FOUND` if there is none to show.
wraith_status_t wraith_transfer_ticket(wraith_transfer_t transfer,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Returns the NodeIds (32 bytes each, one after the other) of receivers that had the code of
// an unfinished earlier run of this offer. They can resume without a new code. No bytes if
// there are none.
wraith_status_t wraith_transfer_continues_for(wraith_transfer_t transfer,
                                              uint8_t *out,
                                              size_t out_cap,
                                              size_t *out_len);

// Returns the progress of a transfer; after the end, the final figures.
wraith_status_t wraith_transfer_progress(wraith_transfer_t transfer, struct wraith_progress_t *out);

// Waits for the end of the transfer, for at most `timeout_ms` milliseconds (or
// `WRAITH_FOREVER`).
//
// Returns `WRAITH_OK`, the status of its failure, or `WRAITH_TIMED_OUT` if the transfer is
// still running. With any other result than `WRAITH_TIMED_OUT`, no callback is running and
// none will follow. Any number of threads may wait, any number of times.
wraith_status_t wraith_transfer_wait(wraith_transfer_t transfer, uint64_t timeout_ms);

// Requests a stop and returns at once; use `wraith_transfer_wait` to wait for the end.
// Verified data is kept, and the same transfer can be resumed later.
wraith_status_t wraith_transfer_cancel(wraith_transfer_t transfer);

// Frees the transfer, and stops it if it is running. Does not wait for a callback that is
// running. After that callback, only `release` is called.
wraith_status_t wraith_transfer_free(wraith_transfer_t transfer);

// Returns the BLAKE3 hash of `data`: 32 bytes.
wraith_status_t wraith_hash(const uint8_t *data,
                            size_t data_len,
                            uint8_t *out,
                            size_t out_cap,
                            size_t *out_len);

// Starts an incremental hash.
wraith_status_t wraith_hasher_new(wraith_hasher_t *out);

// Appends data to the hash.
wraith_status_t wraith_hasher_update(wraith_hasher_t hasher, const uint8_t *data, size_t data_len);

// Returns the hash of all data so far: 32 bytes. More data can follow.
wraith_status_t wraith_hasher_finish(wraith_hasher_t hasher,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Frees the hasher.
wraith_status_t wraith_hasher_free(wraith_hasher_t hasher);

// Generates an identity from system randomness.
wraith_status_t wraith_identity_generate(wraith_identity_t *out);

// Creates the identity of a seed: 32 secret random bytes.
wraith_status_t wraith_identity_from_seed(const uint8_t *seed,
                                          size_t seed_len,
                                          wraith_identity_t *out);

// Returns the seed of the identity: 32 bytes. Anyone with the seed can act as this identity.
wraith_status_t wraith_identity_seed(wraith_identity_t identity,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Returns the NodeId of the identity: 32 bytes.
wraith_status_t wraith_identity_node_id(wraith_identity_t identity,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len);

// Signs `message` (Ed25519, RFC 8032): 64 bytes.
wraith_status_t wraith_identity_sign(wraith_identity_t identity,
                                     const uint8_t *message,
                                     size_t message_len,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Frees the identity and wipes its secret.
wraith_status_t wraith_identity_free(wraith_identity_t identity);

// Verifies that `signature` (64 bytes) is the signature of `node_id` (32 bytes) over
// `message`. `WRAITH_UNAUTHENTIC` if it is not.
wraith_status_t wraith_node_id_verify(const uint8_t *node_id,
                                      size_t node_id_len,
                                      const uint8_t *message,
                                      size_t message_len,
                                      const uint8_t *signature,
                                      size_t signature_len);

// Returns a NodeId as text: 52 characters.
wraith_status_t wraith_node_id_to_text(const uint8_t *node_id,
                                       size_t node_id_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Parses a NodeId from its text, in upper or lower case: 32 bytes. `WRAITH_INVALID_INPUT` if
// it is no possible NodeId.
wraith_status_t wraith_node_id_from_text(const uint8_t *text,
                                         size_t text_len,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len);

// Returns the library's version as a static string, which is never freed.
const char *wraith_version(void);

// Returns the ABI number of the loaded library; compare it with `WRAITH_ABI` of the header.
uint32_t wraith_abi(void);

// Returns the message of the last failed call on this thread: one UTF-8 sentence for people, or
// empty if none failed. If this call itself fails, the message is unchanged.
wraith_status_t wraith_last_error(uint8_t *out, size_t out_cap, size_t *out_len);

// Creates a splitter for one direction of a session.
wraith_status_t wraith_splitter_new(wraith_splitter_t *out);

// Splits `message` into pieces, written to `out` one after the other. Each piece is `room`
// bytes long; the last one has the rest. Seal the pieces one by one; they may arrive in any
// order.
//
// A message shorter than `room` becomes one piece, which is one byte longer than the message.
// A longer message needs a `room` of at least `WRAITH_PIECE_MIN` and may have at most 65535
// pieces, otherwise `WRAITH_INVALID_INPUT`.
wraith_status_t wraith_splitter_split(wraith_splitter_t splitter,
                                      const uint8_t *message,
                                      size_t message_len,
                                      size_t room,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Frees the splitter.
wraith_status_t wraith_splitter_free(wraith_splitter_t splitter);

// Creates a reassembler for one direction of a session, with these limits. `limits` may be
// NULL.
wraith_status_t wraith_reassembler_new(const struct wraith_reassembly_limits_t *limits,
                                       wraith_reassembler_t *out);

// Adds an opened piece. `*is_whole` is 1 if the piece completes a message, which is then in
// `out`, and otherwise 0.
//
// - `WRAITH_BUFFER_TOO_SMALL`: the piece would complete a message. It was not added.
// - `WRAITH_UNAUTHENTIC`: the bytes are no piece, or contradict other pieces of the message.
// - `WRAITH_EXHAUSTED`: the message is longer than the limit. It is discarded.
wraith_status_t wraith_reassembler_push(wraith_reassembler_t reassembler,
                                        const uint8_t *piece,
                                        size_t piece_len,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len,
                                        uint32_t *is_whole);

// Returns the bytes held for incomplete messages, with 64 more per piece.
wraith_status_t wraith_reassembler_held(wraith_reassembler_t reassembler, size_t *out);

// Frees the reassembler and wipes its buffers.
wraith_status_t wraith_reassembler_free(wraith_reassembler_t reassembler);

// Starts a handshake and generates the ephemeral keys of this side.
wraith_status_t wraith_handshake_new(const struct wraith_handshake_options_t *options,
                                     wraith_handshake_t *out);

// Returns the next step: a `wraith_turn_t`.
wraith_status_t wraith_handshake_turn(wraith_handshake_t handshake, uint32_t *out);

// Returns the length of the next message with a payload of `payload_len` bytes. Changes
// nothing.
wraith_status_t wraith_handshake_write_len(wraith_handshake_t handshake,
                                           size_t payload_len,
                                           size_t *out);

// Writes the next message. The protection of the payload depends on pattern and message; the
// first payload of XX is sent in the clear.
wraith_status_t wraith_handshake_write(wraith_handshake_t handshake,
                                       const uint8_t *payload,
                                       size_t payload_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Reads the next message of the other side and returns its payload, which may be empty.
//
// - `WRAITH_UNAUTHENTIC`: this is not the right message, which may still come.
// - `WRAITH_REPLAYED`: this is a repetition of the previous message. Answer it with
//   `wraith_handshake_repeat`.
wraith_status_t wraith_handshake_read(wraith_handshake_t handshake,
                                      const uint8_t *message,
                                      size_t message_len,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Returns the last written message again.
wraith_status_t wraith_handshake_repeat(wraith_handshake_t handshake,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len);

// Returns the transcript hash: equal on both sides, and different in any two handshakes.
// Complete at the end of the handshake.
wraith_status_t wraith_handshake_hash(wraith_handshake_t handshake,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Returns the other side's public Noise key (32 bytes); `WRAITH_NOT_FOUND` while it is
// unknown.
wraith_status_t wraith_handshake_remote_key(wraith_handshake_t handshake,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len);

// Returns the other side's NodeId (32 bytes), once it is proved; `WRAITH_NOT_FOUND` before
// that, and for a side without an identity.
wraith_status_t wraith_handshake_peer(wraith_handshake_t handshake,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Returns the NodeId (32 bytes) that the other side claims; `WRAITH_NOT_FOUND` until it has
// sent one. A claim proves nothing: the first message of IK and IX can be replayed, and anyone
// can make that of IX. The first message of the resulting session that opens proves the claim.
wraith_status_t wraith_handshake_claimed_peer(wraith_handshake_t handshake,
                                              uint8_t *out,
                                              size_t out_cap,
                                              size_t *out_len);

// Returns the session, once, when the handshake is complete. The handshake remains valid, to
// answer a repeated message.
wraith_status_t wraith_handshake_session(wraith_handshake_t handshake, wraith_session_t *out);

// Frees the handshake and wipes its secrets. Its session remains valid.
wraith_status_t wraith_handshake_free(wraith_handshake_t handshake);

// Generates prekeys of an identity, with `one_time` one-time prekeys. They are in memory: save
// them before a bundle leaves, and after each conversation started with them.
// `wraith_prekeys_generate_in_vault` does this automatically.
wraith_status_t wraith_prekeys_generate(wraith_identity_t identity,
                                        size_t one_time,
                                        wraith_prekeys_t *out);

// Returns a bundle for one initiator, to be published. It contains a one-time prekey while
// there are some. Needs room for `WRAITH_BUNDLE_MAX`.
wraith_status_t wraith_prekeys_bundle(wraith_prekeys_t prekeys,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Returns the number of one-time prekeys that were not handed out yet.
wraith_status_t wraith_prekeys_remaining(wraith_prekeys_t prekeys, size_t *out);

// Generates one-time prekeys until `one_time` of them are available.
wraith_status_t wraith_prekeys_replenish(wraith_prekeys_t prekeys,
                                         wraith_identity_t identity,
                                         size_t one_time);

// Generates new signed prekeys; call it about once a week. The previous ones remain valid for
// first messages in transit.
wraith_status_t wraith_prekeys_rotate(wraith_prekeys_t prekeys, wraith_identity_t identity);

// Serializes the prekeys, secrets included, without a checksum, for a caller without a vault.
// Prefer `wraith_prekeys_keep`. `WRAITH_INVALID_STATE` if they are in a vault.
wraith_status_t wraith_prekeys_save(wraith_prekeys_t prekeys,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Restores prekeys from saved bytes.
wraith_status_t wraith_prekeys_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_prekeys_t *out);

// Frees the prekeys and wipes their secrets.
wraith_status_t wraith_prekeys_free(wraith_prekeys_t prekeys);

// Returns the room that `wraith_ratchet_encrypt` needs for a text of `text_len` bytes. The
// message may be shorter.
wraith_status_t wraith_ratchet_room(size_t text_len, size_t *out);

// Starts a conversation with the owner of a published bundle, who may be offline. Check with
// `wraith_ratchet_peer` that the owner is the intended peer.
wraith_status_t wraith_ratchet_initiate(wraith_identity_t identity,
                                        const uint8_t *bundle,
                                        size_t bundle_len,
                                        wraith_ratchet_t *out);

// Returns the NodeId (32 bytes) that the sender of `message` claims, if it is a first message;
// otherwise `WRAITH_NOT_FOUND`. Nothing is authenticated yet.
wraith_status_t wraith_ratchet_initiator_of(const uint8_t *message,
                                            size_t message_len,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len);

// Starts the conversation that `message` requests, and decrypts the message. Needs room for
// `message_len - WRAITH_RATCHET_OVERHEAD`. Consumes the one-time prekey of the message.
//
// If there already is a conversation with that side, try `wraith_ratchet_decrypt` first.
// `WRAITH_INVALID_STATE` if the prekeys are in a vault; use `wraith_ratchet_respond_in_vault`.
wraith_status_t wraith_ratchet_respond(wraith_identity_t identity,
                                       wraith_prekeys_t prekeys,
                                       const uint8_t *aad,
                                       size_t aad_len,
                                       const uint8_t *message,
                                       size_t message_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len,
                                       wraith_ratchet_t *ratchet);

// Encrypts `text`. `aad` is not sent; decryption needs the same `aad`. Needs the room that
// `wraith_ratchet_room` returns. A ratchet in a vault is stored before this returns; save any
// other ratchet before the message leaves.
wraith_status_t wraith_ratchet_encrypt(wraith_ratchet_t ratchet,
                                       const uint8_t *aad,
                                       size_t aad_len,
                                       const uint8_t *text,
                                       size_t text_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Decrypts `message`. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`.
// `WRAITH_REPLAYED` if the message was decrypted before, `WRAITH_TOO_OLD` if it came too late.
// A ratchet in a vault is stored before this returns; save any other ratchet before you act on
// the text.
wraith_status_t wraith_ratchet_decrypt(wraith_ratchet_t ratchet,
                                       const uint8_t *aad,
                                       size_t aad_len,
                                       const uint8_t *message,
                                       size_t message_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Returns the other side's NodeId: 32 bytes.
wraith_status_t wraith_ratchet_peer(wraith_ratchet_t ratchet,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Returns 32 bytes that are equal on both sides and unique to this conversation. Compare them
// over another channel.
wraith_status_t wraith_ratchet_binding(wraith_ratchet_t ratchet,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Sets whether message lengths are padded to buckets, for up to 12 % more bytes: 1 for yes, 0
// (the default) for no.
wraith_status_t wraith_ratchet_set_padding(wraith_ratchet_t ratchet, uint32_t padding);

// Sets the current time in milliseconds, from any fixed starting point. Keys of missing
// messages expire by it. Set it again after `wraith_ratchet_keep`, `wraith_ratchet_load` and
// `wraith_ratchet_restore`.
wraith_status_t wraith_ratchet_set_time(wraith_ratchet_t ratchet, uint64_t now_ms);

// Serializes the conversation, secrets included, without a checksum, for a caller without a
// vault. Prefer `wraith_ratchet_keep`. A conversation restored from bytes other than the
// latest must be started anew. `WRAITH_INVALID_STATE` if it is in a vault.
wraith_status_t wraith_ratchet_save(wraith_ratchet_t ratchet,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Restores a conversation from saved bytes.
wraith_status_t wraith_ratchet_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_ratchet_t *out);

// Frees the conversation and wipes its keys.
wraith_status_t wraith_ratchet_free(wraith_ratchet_t ratchet);

// Encrypts `count` texts with the same `aad`, in this order, and writes the messages to `out`
// one after the other. `results`, an array of `count`, gets the position of each message.
// Needs the room that `wraith_ratchet_room` returns for each text.
//
// All texts are encrypted, or none: `failed`, which may be NULL, gets the index of the first
// that cannot be. A ratchet in a vault is stored once, before this returns.
wraith_status_t wraith_ratchet_encrypt_many(wraith_ratchet_t ratchet,
                                            const uint8_t *aad,
                                            size_t aad_len,
                                            const struct wraith_bytes_t *texts,
                                            size_t count,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len,
                                            struct wraith_ratchet_result_t *results,
                                            size_t *failed);

// Decrypts `count` messages with the same `aad`, each independently. `results`, an array of
// `count`, gets the result of each message and the position of its text in `out`. Needs room
// for all messages less `WRAITH_RATCHET_OVERHEAD` bytes each.
//
// Of two equal messages, the first is decrypted. The call returns `WRAITH_OK` even if some
// messages fail. A ratchet in a vault is stored once, before this returns; if its vault fails,
// no message counts as decrypted.
wraith_status_t wraith_ratchet_decrypt_many(wraith_ratchet_t ratchet,
                                            const uint8_t *aad,
                                            size_t aad_len,
                                            const struct wraith_bytes_t *messages,
                                            size_t count,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len,
                                            struct wraith_ratchet_result_t *results);

// Seals `text` for the identity `node_id` (32 bytes): `text_len + WRAITH_SEALED_BOX_OVERHEAD`
// bytes that only its owner can open. The author is not authenticated. `context` states the
// purpose; it is not sent, and opening needs the same `context`.
wraith_status_t wraith_sealed_box_seal(const uint8_t *node_id,
                                       size_t node_id_len,
                                       const uint8_t *context,
                                       size_t context_len,
                                       const uint8_t *text,
                                       size_t text_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Opens a box. Its text is `sealed_len - WRAITH_SEALED_BOX_OVERHEAD` bytes.
wraith_status_t wraith_sealed_box_open(wraith_identity_t identity,
                                       const uint8_t *context,
                                       size_t context_len,
                                       const uint8_t *sealed,
                                       size_t sealed_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Seals `text`. The message is `text_len + WRAITH_SESSION_OVERHEAD` bytes. `aad` is not sent;
// opening needs the same `aad`. `number`, which may be NULL, gets the message number.
wraith_status_t wraith_session_seal(wraith_session_t session,
                                    const uint8_t *aad,
                                    size_t aad_len,
                                    const uint8_t *text,
                                    size_t text_len,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len,
                                    uint64_t *number);

// Opens `message`. Its text is `message_len - WRAITH_SESSION_OVERHEAD` bytes.
// `WRAITH_UNAUTHENTIC` if the other side did not seal it. `WRAITH_REPLAYED` if it was opened
// before, `WRAITH_TOO_OLD` if it is older than the last 2048. `number` may be NULL.
wraith_status_t wraith_session_open(wraith_session_t session,
                                    const uint8_t *aad,
                                    size_t aad_len,
                                    const uint8_t *message,
                                    size_t message_len,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len,
                                    uint64_t *number);

// Seals `count` texts with the same `aad` and writes the messages to `out` one after the
// other, each `WRAITH_SESSION_OVERHEAD` bytes longer than its text. All are sealed, or none:
// `failed`, which may be NULL, gets the index of the first that cannot be.
wraith_status_t wraith_session_seal_many(wraith_session_t session,
                                         const uint8_t *aad,
                                         size_t aad_len,
                                         const struct wraith_bytes_t *texts,
                                         size_t count,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len,
                                         size_t *failed);

// Opens `count` messages with the same `aad`, each independently. `results`, an array of
// `count`, gets the result of each message and the position of its text in `out`. Needs room
// for all messages less `WRAITH_SESSION_OVERHEAD` bytes each.
//
// Of two equal messages, the first is opened. The call returns `WRAITH_OK` even if some
// messages fail.
wraith_status_t wraith_session_open_many(wraith_session_t session,
                                         const uint8_t *aad,
                                         size_t aad_len,
                                         const struct wraith_bytes_t *messages,
                                         size_t count,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len,
                                         struct wraith_opened_t *results);

// Sets the current time in milliseconds, from any fixed starting point. Keys then change every
// ten minutes. Without it, they change only by the number of messages and bytes.
wraith_status_t wraith_session_set_time(wraith_session_t session, uint64_t now_ms);

// Serializes the session; the bytes are as secret as the session. Needs room for
// `WRAITH_SESSION_SAVED_MAX`.
//
// After the first save, the session seals at most 512 further messages until
// `wraith_session_stored` confirms that a restore will find these bytes. Beyond that,
// `wraith_session_seal` returns `WRAITH_INVALID_STATE`. A session in a vault needs none of
// this.
wraith_status_t wraith_session_save(wraith_session_t session,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Confirms that the bytes of the last save are stored, and nothing older.
// `WRAITH_INVALID_STATE` if there was no save since the last confirmation.
wraith_status_t wraith_session_stored(wraith_session_t session);

// Restores a session from saved bytes. It seals nothing before it is saved and stored anew.
// `WRAITH_UNAUTHENTIC` if the bytes are damaged or of an unknown version.
wraith_status_t wraith_session_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_session_t *out);

// Frees the session and wipes its keys.
wraith_status_t wraith_session_free(wraith_session_t session);

// Opens the vault in a folder; creates the folder if it is missing. Its records are encrypted
// only if the disk is. One process at a time owns it.
wraith_status_t wraith_vault_folder(const uint8_t *folder, size_t folder_len, wraith_vault_t *out);

// Creates a vault from callbacks. `store`, `load` and `remove` are mandatory.
wraith_status_t wraith_vault_new(const struct wraith_vault_callbacks_t *callbacks,
                                 wraith_vault_t *out);

// Keeps a session in a vault from now on, under an unused name of 1 to 64 characters (a-z,
// A-Z, 0-9, `-`, `_`). `WRAITH_CONFLICT` if the name is in use. After `WRAITH_VAULT_FAILED` a
// record may exist all the same, so the session seals nothing until it is kept, or saved and
// stored.
//
// Each change by sealing or opening is in the vault before the call returns. If the process is
// killed at any moment and the session is loaded again, it uses no number twice and opens no
// message twice.
wraith_status_t wraith_session_keep(wraith_session_t session,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// Loads the session stored under this name. `WRAITH_NOT_FOUND` if there is none,
// `WRAITH_CONFLICT` if the vault detects that it was rolled back.
wraith_status_t wraith_session_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_session_t *out);

// Generates prekeys of an identity and keeps them in a vault under an unused name, with
// `one_time` one-time prekeys. `WRAITH_CONFLICT` if the name is in use. That a bundle was
// handed out, or a prekey used, is recorded in the vault before the call returns any output.
wraith_status_t wraith_prekeys_generate_in_vault(wraith_vault_t vault,
                                                 const uint8_t *name,
                                                 size_t name_len,
                                                 wraith_identity_t identity,
                                                 size_t one_time,
                                                 wraith_prekeys_t *out);

// Moves prekeys from memory into a vault, as `wraith_session_keep` does. If that fails, they
// stay in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same;
// `wraith_vault_remove` removes it.
wraith_status_t wraith_prekeys_keep(wraith_prekeys_t prekeys,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// Loads the prekeys stored under this name; fails as `wraith_session_load` does.
wraith_status_t wraith_prekeys_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_prekeys_t *out);

// Like `wraith_ratchet_initiate`, but keeps the conversation in a vault from the start, under
// an unused name. `WRAITH_CONFLICT` if the name is in use. Each change by encryption or
// decryption is in the vault before the call returns. If the vault fails, nothing has changed.
wraith_status_t wraith_ratchet_initiate_in_vault(wraith_vault_t vault,
                                                 const uint8_t *name,
                                                 size_t name_len,
                                                 wraith_identity_t identity,
                                                 const uint8_t *bundle,
                                                 size_t bundle_len,
                                                 wraith_ratchet_t *out);

// Like `wraith_ratchet_respond`, but keeps the conversation in a vault from the start. The
// prekeys must be in a vault too, the same or another one; otherwise `WRAITH_INVALID_STATE`.
//
// The conversation is stored first, then its prekeys are stored as used, then the text is
// returned. If a call was interrupted or its vault failed, repeat it with the same message and
// name; the result is the same.
//
// Therefore derive the name from `wraith_ratchet_initiator_of`, and pass every message that
// has an initiator to this function first. If it returns `WRAITH_CONFLICT`, `WRAITH_NOT_FOUND`
// or `WRAITH_REPLAYED`, pass the message to `wraith_ratchet_decrypt` of the conversation of
// that name.
wraith_status_t wraith_ratchet_respond_in_vault(wraith_vault_t vault,
                                                const uint8_t *name,
                                                size_t name_len,
                                                wraith_identity_t identity,
                                                wraith_prekeys_t prekeys,
                                                const uint8_t *aad,
                                                size_t aad_len,
                                                const uint8_t *message,
                                                size_t message_len,
                                                uint8_t *out,
                                                size_t out_cap,
                                                size_t *out_len,
                                                wraith_ratchet_t *ratchet);

// Moves a conversation from memory into a vault, as `wraith_session_keep` does. If that fails,
// it stays in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same;
// `wraith_vault_remove` removes it.
wraith_status_t wraith_ratchet_keep(wraith_ratchet_t ratchet,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// Loads the conversation stored under this name; fails as `wraith_session_load` does. If two
// processes load it, one of them fails with `WRAITH_CONFLICT` before it returns any output.
wraith_status_t wraith_ratchet_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_ratchet_t *out);

// Removes the record of this name, if there is one. Free the object stored under it first.
wraith_status_t wraith_vault_remove(wraith_vault_t vault, const uint8_t *name, size_t name_len);

// Frees the handle. The vault stays open while an object is kept in it.
wraith_status_t wraith_vault_free(wraith_vault_t vault);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WRAITH_H */
