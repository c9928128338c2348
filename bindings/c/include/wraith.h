// wraith for C: keys, messages and files. Made from crates/wraith-c by `cargo run -p wraith-c-header`; not edited by hand.
//
// Rules for all functions:
// - They return a wraith_status_t, but for wraith_version and wraith_abi. wraith_last_error has the words of a failure.
// - A handle is a number, and 0 is none. One that was freed or is of another kind gives WRAITH_INVALID_HANDLE, always.
//   Each is freed once with the function of its kind; freeing it while another thread uses it is allowed.
// - Every function may be called from any thread. Of several on one handle, one works at a time.
// - `(data, len)` is input, read until the call returns and never kept. NULL is fine where the length is 0, and
//   WRAITH_INVALID_INPUT where it is not.
// - `(out, out_cap, out_len)` is a buffer of yours. `*out_len` is what was written, or, with WRAITH_BUFFER_TOO_SMALL, what
//   is needed; nothing else has changed then, so the same call with more room does what this one would have done.
//   Output may overlap input.
// - Text is UTF-8, with a length and without a NUL.
// - A struct of options begins with its size, and all zeros else are the usual. It may be NULL.

#ifndef WRAITH_H
#define WRAITH_H

#include <stddef.h>
#include <stdint.h>

// For `receivers`: whoever comes, until it is cancelled.
#define WRAITH_ANY_NUMBER UINT32_MAX

// For `timeout_ms`: for as long as it takes.
#define WRAITH_FOREVER UINT64_MAX

// Bytes of a hash.
#define WRAITH_HASH_BYTES 32

// Bytes of a NodeId.
#define WRAITH_NODE_ID_BYTES 32

// Characters of its text.
#define WRAITH_NODE_ID_TEXT 52

// Bytes of a seed.
#define WRAITH_SEED_BYTES 32

// Bytes of a signature.
#define WRAITH_SIGNATURE_BYTES 64

// The number of this interface. Programs that were compiled for another one must not use the library.
#define WRAITH_ABI 1

// The least room for a piece of several, in bytes.
#define WRAITH_PIECE_MIN 18

// The longest message of a handshake, in bytes.
#define WRAITH_HANDSHAKE_MESSAGE_MAX 65535

// The longest payload of one, in bytes.
#define WRAITH_HANDSHAKE_PAYLOAD_MAX 61440

// Room for a bundle, in bytes.
#define WRAITH_BUNDLE_MAX 1417

// Most one-time prekeys.
#define WRAITH_ONE_TIME_MAX 1000

// How much longer a message is than its text at least, in bytes.
#define WRAITH_RATCHET_OVERHEAD 90

// How much longer a box is than its text, in bytes.
#define WRAITH_SEALED_BOX_OVERHEAD 65

// How much longer a message is than its text, in bytes.
#define WRAITH_SESSION_OVERHEAD 24

// Room for a saved session, in bytes.
#define WRAITH_SESSION_SAVED_MAX 704

// Most messages of one call.
#define WRAITH_BATCH_MAX 65536

// How a call ended. Numbers get added, never changed.
enum wraith_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It is done.
    WRAITH_OK = 0,
    // An argument makes no sense: a pointer that is NULL with a length above 0, a wrong length, a code or ticket that is none.
    WRAITH_INVALID_INPUT = 1,
    // The handle is 0, was freed, or is of another kind.
    WRAITH_INVALID_HANDLE = 2,
    // The caller's buffer is too small. `*out_len` says how much is needed, and nothing has changed.
    WRAITH_BUFFER_TOO_SMALL = 3,
    // Not now: calls in another order, such as reading when it is one's turn to write.
    WRAITH_INVALID_STATE = 4,
    // A message, signature or saved state is not what it should be: forged, damaged or of somebody else. Nothing has changed.
    WRAITH_UNAUTHENTIC = 5,
    // The message came before, or is too old to tell. Nothing has changed.
    WRAITH_REPLAYED = 6,
    // There is no more: handles, messages of a session, or what a limit allows.
    WRAITH_EXHAUSTED = 7,
    // What the caller keeps keys in (a vault) has failed.
    WRAITH_VAULT_FAILED = 8,
    // The system has no randomness.
    WRAITH_NO_RANDOMNESS = 9,
    // It is not over after the time that was given. It goes on.
    WRAITH_TIMED_OUT = 10,
    // Nobody answered at any address, nobody came, or there is no such thing.
    WRAITH_NOT_FOUND = 11,
    // The other side's user said no.
    WRAITH_REFUSED = 12,
    // The sender came back with another offer than the one that was accepted.
    WRAITH_OFFER_CHANGED = 13,
    // Wrong words, a code that is used or expired, or a ticket that names nothing there.
    WRAITH_WRONG_CODE = 14,
    // The connection was lost and did not come back; the same transfer again continues.
    WRAITH_NETWORK_LOST = 15,
    // A disk: full, read-only, unreadable; the same transfer again continues.
    WRAITH_DISK = 16,
    // Bytes do not match their hash.
    WRAITH_VERIFICATION = 17,
    // The peer used a name that could leave the target folder.
    WRAITH_UNSAFE_NAME = 18,
    // Done, but some files could not be transferred.
    WRAITH_PARTIAL = 19,
    // The peer broke the protocol.
    WRAITH_PROTOCOL = 20,
    // This side, or the other one, stopped it; the same transfer again continues.
    WRAITH_CANCELLED = 21,
    // The receiver put it off; the offer stays good.
    WRAITH_LATER = 22,
    // Another program with this identity receives it, and its user accepted first.
    WRAITH_RECEIVED_ELSEWHERE = 23,
    // A vault holds a record of this name already, or a newer one: it is in use elsewhere, or was rolled back.
    WRAITH_CONFLICT = 24,
    // Anything without a number of its own.
    WRAITH_OTHER = 98,
    // A fault of the library. What it happened to is of no use any more; everything else is.
    WRAITH_PANICKED = 99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_status_t wraith_status_t;
#else
typedef int32_t wraith_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an event is about. Numbers get added: what is not known is to be passed over.
enum wraith_event_kind_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Something without a number of its own.
    WRAITH_EVENT_OTHER = 0,
    // Somebody proved the words of the code. `peer` says who; `text` is where.
    WRAITH_EVENT_CODE_USED = 1,
    // Somebody tried the code with wrong words: it is used up.
    WRAITH_EVENT_CODE_BURNED = 2,
    // There is a long code, `text`, which needs no common network.
    WRAITH_EVENT_LONG_CODE = 3,
    // The code's time is up, and nobody came.
    WRAITH_EVENT_CODE_EXPIRED = 4,
    // Nobody can come from the place `path` at present, for the reason `text`.
    WRAITH_EVENT_PLACE_LOST = 5,
    // Somebody can come from the place `path` again.
    WRAITH_EVENT_PLACE_BACK = 6,
    // The other side was found.
    WRAITH_EVENT_MET = 7,
    // Both sides have authenticated each other: `peer`, at `text`.
    WRAITH_EVENT_CONNECTED = 8,
    // The connection goes another way from now on: to `text`.
    WRAITH_EVENT_PATH = 9,
    // What is offered: `path` is its first name, `count` its files, `bytes` theirs.
    WRAITH_EVENT_OFFERED = 10,
    // The receiver accepted.
    WRAITH_EVENT_ACCEPTED = 11,
    // The file `path` of `bytes` bytes is settled; `detail` is a `wraith_file_status_t`.
    WRAITH_EVENT_FILE = 12,
    // Something to know of `path` that stops nothing: `text`.
    WRAITH_EVENT_NOTE = 13,
    // How far it is: `count` files and `bytes` bytes are settled.
    WRAITH_EVENT_PROGRESS = 14,
    // The connection was lost because of `text`; for `count` seconds more the other side is looked for.
    WRAITH_EVENT_LOST = 15,
    // A receiver has confirmed everything, `bytes` of it on its last connection.
    WRAITH_EVENT_SENT = 16,
    // The receiver has only looked at the offer, which stays good.
    WRAITH_EVENT_ONLY_LOOKED = 17,
    // The reader was too slow for `count` events.
    WRAITH_EVENT_LAGGED = 18,
    // The end: everything is done and confirmed.
    WRAITH_EVENT_DONE = 19,
    // The end: it failed, as `status` and `text` say.
    WRAITH_EVENT_FAILED = 20,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_event_kind_t wraith_event_kind_t;
#else
typedef uint32_t wraith_event_kind_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What became of a file.
enum wraith_file_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Moved now, and verified.
    WRAITH_FILE_DONE = 0,
    // The receiver had exactly this file already.
    WRAITH_FILE_ALREADY_HERE = 1,
    // A different file was in its place and was left alone.
    WRAITH_FILE_SKIPPED = 2,
    // It changed at the sender while it was read.
    WRAITH_FILE_CHANGED = 3,
    // The sender could not read it.
    WRAITH_FILE_UNREADABLE = 4,
    // An earlier part of it did not belong to it any more. Receive it again.
    WRAITH_FILE_STALE = 5,
    // The receiver could not put it in place.
    WRAITH_FILE_BLOCKED = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_file_status_t wraith_file_status_t;
#else
typedef uint32_t wraith_file_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What to do with an offer.
enum wraith_answer_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Not now: the offer stays good.
    WRAITH_ANSWER_LATER = 0,
    // Fetch it.
    WRAITH_ACCEPT = 1,
    // No, and the sender is told.
    WRAITH_REFUSE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_answer_t wraith_answer_t;
#else
typedef int32_t wraith_answer_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// To whom an offer goes.
enum wraith_offer_to_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Whoever has the code that is made for it.
    WRAITH_OFFER_BY_CODE = 0,
    // Whoever has the ticket.
    WRAITH_OFFER_BY_TICKET = 1,
    // The contact that is named.
    WRAITH_OFFER_TO_CONTACT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_offer_to_t wraith_offer_to_t;
#else
typedef uint32_t wraith_offer_to_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What to do about a name that something else has.
enum wraith_on_conflict_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // What arrives gets another name.
    WRAITH_RENAME = 0,
    // What is there is left alone.
    WRAITH_SKIP = 1,
    // What is there is replaced, once all of the new one is verified.
    WRAITH_OVERWRITE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_on_conflict_t wraith_on_conflict_t;
#else
typedef uint32_t wraith_on_conflict_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What comes next in a handshake.
enum wraith_turn_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // This side writes.
    WRAITH_TURN_WRITE = 1,
    // This side reads.
    WRAITH_TURN_READ = 2,
    // All is said: `wraith_handshake_session`.
    WRAITH_TURN_OVER = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wraith_turn_t wraith_turn_t;
#else
typedef uint32_t wraith_turn_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A node.
typedef uint64_t wraith_node_t;

// How to fetch. All zeros but `struct_size` asks, and renames.
typedef struct wraith_fetch_options_t {
    // `sizeof(wraith_fetch_options_t)`.
    size_t struct_size;
    // A `wraith_on_conflict_t`.
    uint32_t on_conflict;
    // 1 to fetch whatever is offered without a question.
    uint32_t accept_all;
    // 1 to end before everything is on stable storage.
    uint32_t no_sync;
    // 1 to take over all permissions.
    uint32_t keep_modes;
    // Most bytes a second; 0 for no limit.
    uint64_t bytes_per_second;
    // How long the sender is looked for at first, in milliseconds; 0 for what is usual.
    uint64_t timeout_ms;
    // `WRAITH_EVENT_PROGRESS` comes every so many milliseconds; 0 for never.
    uint64_t progress_ms;
} wraith_fetch_options_t;

// Bytes of somebody else: `len` of them at `data`, which may be NULL if `len` is 0. Text is UTF-8 without a NUL at its end.
typedef struct wraith_bytes_t {
    // Where they begin.
    const uint8_t *data;
    // How many there are.
    size_t len;
} wraith_bytes_t;

// Something that happened. What a kind does not name is 0, empty or NULL.
typedef struct wraith_event_t {
    // A `wraith_event_kind_t`.
    uint32_t kind;
    // How it ended, of `WRAITH_EVENT_FAILED`.
    wraith_status_t status;
    // By the kind.
    uint32_t detail;
    // By the kind.
    uint64_t bytes;
    // By the kind.
    uint64_t count;
    // A path, name or place: UTF-8, escaped for a terminal.
    struct wraith_bytes_t path;
    // For people.
    struct wraith_bytes_t text;
    // The other side's NodeId (32 bytes), or empty.
    struct wraith_bytes_t peer;
} wraith_event_t;

// What is offered, as the sender says.
typedef struct wraith_offer_info_t {
    // Who offers it (32 bytes); authenticated.
    struct wraith_bytes_t sender;
    // The first name, escaped for a terminal; for show only.
    struct wraith_bytes_t name;
    // Regular files.
    uint64_t files;
    // Folders.
    uint64_t folders;
    // Symbolic links.
    uint64_t links;
    // Bytes of all files.
    uint64_t bytes;
    // Bytes of the largest file.
    uint64_t largest;
    // Entries that cannot be sent and are in none of these counts.
    uint64_t left_out;
    // 1 if it is one stream of bytes, whose size is 0 where it is not known.
    uint32_t is_stream;
} wraith_offer_info_t;

// What is told of a transfer, and asked. All functions but `ask` may be NULL.
//
// They are called from one thread of the library that belongs to this transfer alone, never two at a time, and in order.
// They may block (a transfer goes on meanwhile, except that nothing is written before `ask` has answered), and they may
// call this library, also for the same transfer; only `wraith_transfer_wait` for it is refused there. No C++ exception
// and no `longjmp` may leave them. What their pointers lead to is good until they return.
typedef struct wraith_callbacks_t {
    // `sizeof(wraith_callbacks_t)`.
    size_t struct_size;
    // Is given to each function.
    void *user;
    // Something happened. Who is too slow for 1024 of them misses some, and is told how many; the last is never missed.
    void (*event)(void *user, const struct wraith_event_t *event);
    // Whether to fetch what is offered: a `wraith_answer_t`. Asked once of each fetch; what is not known counts as later.
    int32_t (*ask)(void *user, const struct wraith_offer_info_t *offer);
    // The last call of all: from here on `user` is not used any more. It comes after the last event, or after
    // `wraith_transfer_free`; of a transfer that could not be started it does not come.
    void (*release)(void *user);
} wraith_callbacks_t;

// An offer or a fetch.
typedef uint64_t wraith_transfer_t;

// An identity with its secret.
typedef uint64_t wraith_identity_t;

// How a node is set up. All zeros but `struct_size` is a new identity that meets others on the local network, remembers
// nothing, and uses no server.
typedef struct wraith_node_options_t {
    // `sizeof(wraith_node_options_t)`.
    size_t struct_size;
    // Who it is; 0 for the identity of its state, or a new one.
    wraith_identity_t identity;
    // The folder where it remembers identity, contacts and unfinished transfers; empty for nowhere.
    struct wraith_bytes_t state_folder;
    // A rendezvous server, `HOST` or `HOST:PORT`; empty for none.
    struct wraith_bytes_t rendezvous;
    // 1 to meet nobody on the local network.
    uint32_t lan_off;
    // 1 to use the Mainline DHT too.
    uint32_t dht;
} wraith_node_options_t;

// How an offer is made. All zeros but `struct_size` is by code, to one receiver.
typedef struct wraith_offer_options_t {
    // `sizeof(wraith_offer_options_t)`.
    size_t struct_size;
    // A `wraith_offer_to_t`.
    uint32_t to;
    // How many receivers; 0 is 1. `WRAITH_ANY_NUMBER`.
    uint32_t receivers;
    // The name of the contact it goes to.
    struct wraith_bytes_t contact;
    // The address to listen on, `IP:PORT`; empty for every address of this machine.
    struct wraith_bytes_t bind;
    // Most bytes a second; 0 for no limit.
    uint64_t bytes_per_second;
    // How long the code is good, in seconds; 0 for an hour.
    uint64_t expires_s;
    // How long somebody is waited or looked for, in milliseconds; 0 for what is usual.
    uint64_t timeout_ms;
    // `WRAITH_EVENT_PROGRESS` comes every so many milliseconds; 0 for never.
    uint64_t progress_ms;
} wraith_offer_options_t;

// How far a transfer is, or what came of it.
typedef struct wraith_progress_t {
    // Bytes settled: moved, there already, or of files that failed.
    uint64_t bytes;
    // Bytes of all files in the offer.
    uint64_t bytes_total;
    // Files settled.
    uint64_t files;
    // Files in the offer.
    uint64_t files_total;
    // Bytes that moved in a second, over the last five seconds.
    uint64_t bytes_per_second;
    // Receivers that have confirmed everything, of an offer that has ended.
    uint64_t receivers;
} wraith_progress_t;

// A hash that is being computed.
typedef uint64_t wraith_hasher_t;

// What cuts messages.
typedef uint64_t wraith_splitter_t;

// What a reassembler may hold. 0 stands for the usual.
typedef struct wraith_reassembly_limits_t {
    // `sizeof(wraith_reassembly_limits_t)`.
    size_t struct_size;
    // The longest message, in bytes: 1 MiB.
    size_t message_bytes;
    // All that is held of messages that are not whole yet, and 64 bytes more for each piece: 2 MiB, or twice the longest
    // message if that is more. The oldest message gives way.
    size_t held_bytes;
    // Messages that are not whole yet: 16.
    size_t held_messages;
} wraith_reassembly_limits_t;

// What puts messages together.
typedef uint64_t wraith_reassembler_t;

// What a handshake is begun with.
typedef struct wraith_handshake_options_t {
    // `sizeof(wraith_handshake_options_t)`.
    size_t struct_size;
    // 1 for the side that writes first.
    uint32_t is_initiator;
    // 0.
    uint32_t reserved;
    // A name such as `Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s`, which is what empty stands for. XX, XK, IK, NK, IX;
    // psk0 to psk3; with or without `hfs` and `+MLKEM768`; AESGCM, ChaChaPoly; SHA256, SHA512, BLAKE2s, BLAKE2b.
    struct wraith_bytes_t protocol;
    // Who this side is: the handshake tells and proves it. 0 for none.
    wraith_identity_t identity;
    // In place of an identity: 32 secret bytes, a plain Noise key.
    struct wraith_bytes_t local_key;
    // The NodeId (32 bytes) that the other side has to have; where the pattern has its key known before, this is that key.
    struct wraith_bytes_t peer;
    // In place of `peer`: the other side's public Noise key (32 bytes), where the pattern has it known before.
    struct wraith_bytes_t remote_key;
    // The pre-shared key (32 bytes), exactly where the name has one.
    struct wraith_bytes_t psk;
    // What both sides must agree on beside the protocol. It is not sent.
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

// What became of one message of several, and where its bytes are in the buffer.
typedef struct wraith_ratchet_result_t {
    // `WRAITH_OK`, or why it was not decrypted: nothing has changed by it then.
    wraith_status_t status;
    // Where its bytes begin in the buffer.
    size_t offset;
    // How many there are.
    size_t len;
} wraith_ratchet_result_t;

// What became of one message of several.
typedef struct wraith_opened_t {
    // `WRAITH_OK`, or why it was not opened: nothing has changed by it then.
    wraith_status_t status;
    // Its number.
    uint64_t number;
    // Where its text begins in the buffer.
    size_t offset;
    // How long that is.
    size_t len;
} wraith_opened_t;

// A vault.
typedef uint64_t wraith_vault_t;

// What keeps records of sessions, conversations and prekeys for the caller: a keychain, a database. Each function returns a `wraith_status_t`.
//
// They may be called from any thread, and at the same time for different names. They may call this library, but not for what
// they are called for, which gives `WRAITH_INVALID_STATE`. All that is kept rests on this: a record is replaced whole or not
// at all; of two stores with the same generation one fails; what was stored with `durability` 1 is never followed by
// anything older. A record holds keys, so it should be encrypted.
typedef struct wraith_vault_callbacks_t {
    // `sizeof(wraith_vault_callbacks_t)`.
    size_t struct_size;
    // Is given to each function.
    void *user;
    // Puts `record` in the place of the one of this name. `WRAITH_CONFLICT` if the one that is there has this generation or a
    // later one. `durability` is 0 if it has to outlive the process, 1 if a power cut.
    int32_t (*store)(void *user,
                     struct wraith_bytes_t name,
                     uint64_t generation,
                     struct wraith_bytes_t record,
                     uint32_t durability);
    // Copies the record of this name into `out` and its length into `*out_len`. `WRAITH_NOT_FOUND` if there is none,
    // `WRAITH_BUFFER_TOO_SMALL`, with the length, if there is too little room: it is called again then.
    int32_t (*load)(void *user,
                    struct wraith_bytes_t name,
                    uint8_t *out,
                    size_t out_cap,
                    size_t *out_len);
    // Removes the record of this name, if there is one.
    int32_t (*remove)(void *user, struct wraith_bytes_t name);
    // The latest generation that was ever stored under this name, from a memory that is not restored together with the
    // records. `WRAITH_NOT_FOUND` if it does not know. May be NULL; then a vault that was rolled back is not noticed.
    int32_t (*latest)(void *user, struct wraith_bytes_t name, uint64_t *out);
    // The last call of all. May be NULL.
    void (*release)(void *user);
} wraith_vault_callbacks_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Fetches what `source`, a code or a ticket, offers into `folder`, which is made when the offer is accepted. Returns at
// once. `callbacks` needs `ask`, unless `options` says to accept whatever is offered.
wraith_status_t wraith_fetch(wraith_node_t node,
                             const uint8_t *source,
                             size_t source_len,
                             const uint8_t *folder,
                             size_t folder_len,
                             const struct wraith_fetch_options_t *options,
                             const struct wraith_callbacks_t *callbacks,
                             wraith_transfer_t *out);

// A node. `options` may be NULL.
wraith_status_t wraith_node_new(const struct wraith_node_options_t *options, wraith_node_t *out);

// Its NodeId: 32 bytes.
wraith_status_t wraith_node_id(wraith_node_t node, uint8_t *out, size_t out_cap, size_t *out_len);

// Remembers that `name` is the identity `node_id` (32 bytes), which listens at `address` (`HOST` or `HOST:PORT`; may be
// empty). A name's identity is never replaced.
wraith_status_t wraith_node_add_contact(wraith_node_t node,
                                        const uint8_t *name,
                                        size_t name_len,
                                        const uint8_t *node_id,
                                        size_t node_id_len,
                                        const uint8_t *address,
                                        size_t address_len);

// Frees it. Its transfers go on until they are freed as well. Who frees the last of them waits, two seconds at most, until
// peers were told.
wraith_status_t wraith_node_free(wraith_node_t node);

// Offers the files and folders at `paths`. Returns as soon as there is a code or ticket to show; nothing of what is
// offered has been read by then. `options` and `callbacks` may be NULL.
wraith_status_t wraith_offer(wraith_node_t node,
                             const struct wraith_bytes_t *paths,
                             size_t paths_count,
                             const struct wraith_offer_options_t *options,
                             const struct wraith_callbacks_t *callbacks,
                             wraith_transfer_t *out);

// The code of an offer, for people to say. `WRAITH_NOT_FOUND` if it has none: there is a ticket then.
wraith_status_t wraith_transfer_code(wraith_transfer_t transfer,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// The ticket of an offer by ticket: a secret, good for whoever has it. `WRAITH_NOT_FOUND` if it has none to show.
wraith_status_t wraith_transfer_ticket(wraith_transfer_t transfer,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// How far it is. After the end, how far it came.
wraith_status_t wraith_transfer_progress(wraith_transfer_t transfer, struct wraith_progress_t *out);

// Waits until it is over, `timeout_ms` milliseconds at most (`WRAITH_FOREVER`), and returns how it ended: `WRAITH_OK`, why
// not, or `WRAITH_TIMED_OUT` if it goes on. After anything but that no callback runs and none will follow. Any number of
// threads may wait, any number of times.
wraith_status_t wraith_transfer_wait(wraith_transfer_t transfer,
                                     uint64_t timeout_ms);

// Asks it to stop, and does not wait; `wraith_transfer_wait` does. What has arrived stays, and the same another time
// continues.
wraith_status_t wraith_transfer_cancel(wraith_transfer_t transfer);

// Frees it, and stops it if it runs. A callback that is running ends as it likes, and `release` is the only one that
// follows; this does not wait for it.
wraith_status_t wraith_transfer_free(wraith_transfer_t transfer);

// The BLAKE3 hash of `data`: 32 bytes.
wraith_status_t wraith_hash(const uint8_t *data,
                            size_t len,
                            uint8_t *out,
                            size_t out_cap,
                            size_t *out_len);

// Begins the hash of what comes in pieces.
wraith_status_t wraith_hasher_new(wraith_hasher_t *out);

// Takes in one more piece.
wraith_status_t wraith_hasher_update(wraith_hasher_t hasher, const uint8_t *data, size_t len);

// The hash of everything so far: 32 bytes. More can follow.
wraith_status_t wraith_hasher_finish(wraith_hasher_t hasher,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Frees it.
wraith_status_t wraith_hasher_free(wraith_hasher_t hasher);

// A new identity from the system's randomness.
wraith_status_t wraith_identity_generate(wraith_identity_t *out);

// The identity of a seed: 32 random bytes that are kept secret.
wraith_status_t wraith_identity_from_seed(const uint8_t *seed,
                                          size_t seed_len,
                                          wraith_identity_t *out);

// The seed that the identity was made of: 32 bytes. Whoever has it is this identity.
wraith_status_t wraith_identity_seed(wraith_identity_t identity,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Its NodeId: 32 bytes.
wraith_status_t wraith_identity_node_id(wraith_identity_t identity,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len);

// Its signature over `message` (Ed25519, RFC 8032): 64 bytes.
wraith_status_t wraith_identity_sign(wraith_identity_t identity,
                                     const uint8_t *message,
                                     size_t message_len,
                                     uint8_t *out,
                                     size_t out_cap,
                                     size_t *out_len);

// Frees it, and wipes its secret.
wraith_status_t wraith_identity_free(wraith_identity_t identity);

// Checks that `signature` (64 bytes) is the one of `node_id` (32 bytes) over `message`; `WRAITH_UNAUTHENTIC` if not.
wraith_status_t wraith_node_id_verify(const uint8_t *node_id,
                                      size_t node_id_len,
                                      const uint8_t *message,
                                      size_t message_len,
                                      const uint8_t *signature,
                                      size_t signature_len);

// A NodeId as text: 52 characters.
wraith_status_t wraith_node_id_to_text(const uint8_t *node_id,
                                       size_t node_id_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// A NodeId from its text, in either case: 32 bytes. `WRAITH_INVALID_INPUT` if nobody can have it.
wraith_status_t wraith_node_id_from_text(const uint8_t *text,
                                         size_t text_len,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len);

// The library's version as text, which is always there and never freed.
const char *wraith_version(void);

// The interface of the library that is loaded: to be compared with `WRAITH_ABI` of the header.
uint32_t wraith_abi(void);

// Why the last call on this thread that failed did so: one sentence as UTF-8, for people. Empty if none has. A call of this
// that fails itself changes nothing.
wraith_status_t wraith_last_error(uint8_t *out,
                                  size_t out_cap,
                                  size_t *out_len);

// What cuts the messages of one direction of a session.
wraith_status_t wraith_splitter_new(wraith_splitter_t *out);

// Cuts `message` into pieces, one behind the other into `out`: each is `room` bytes long, the last one what is left. They are
// sealed one by one and may arrive in any order. A message shorter than `room` is one piece, a byte longer than itself;
// any other one takes a `room` of `WRAITH_PIECE_MIN` or more, and 65535 pieces at most: `WRAITH_INVALID_INPUT` if it
// does not.
wraith_status_t wraith_splitter_split(wraith_splitter_t splitter,
                                      const uint8_t *message,
                                      size_t message_len,
                                      size_t room,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Frees it.
wraith_status_t wraith_splitter_free(wraith_splitter_t splitter);

// What puts the messages of one direction of a session together, and holds no more than `limits`, which may be NULL.
wraith_status_t wraith_reassembler_new(const struct wraith_reassembly_limits_t *limits,
                                       wraith_reassembler_t *out);

// Takes a piece, which was opened before. `*is_whole` is 1 if that makes a message whole, which is in `out` then, and 0 if it
// does not. `WRAITH_BUFFER_TOO_SMALL` comes only with a piece that makes one whole, and has not taken it. `WRAITH_UNAUTHENTIC` if
// it is no piece or contradicts others of its message; `WRAITH_EXHAUSTED` if its message is longer than the limit, which
// gives that message up.
wraith_status_t wraith_reassembler_push(wraith_reassembler_t reassembler,
                                        const uint8_t *piece,
                                        size_t piece_len,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len,
                                        uint32_t *is_whole);

// Bytes that are held of messages that are not whole yet, with 64 more for each piece.
wraith_status_t wraith_reassembler_held(wraith_reassembler_t reassembler, size_t *out);

// Frees it, and wipes what it holds.
wraith_status_t wraith_reassembler_free(wraith_reassembler_t reassembler);

// Begins a handshake: draws this side's keys for it.
wraith_status_t wraith_handshake_new(const struct wraith_handshake_options_t *options,
                                     wraith_handshake_t *out);

// What comes next: a `wraith_turn_t`.
wraith_status_t wraith_handshake_turn(wraith_handshake_t handshake, uint32_t *out);

// How long the next message is with a payload of `payload_len` bytes. Changes nothing.
wraith_status_t wraith_handshake_write_len(wraith_handshake_t handshake,
                                           size_t payload_len,
                                           size_t *out_len);

// Writes the next message. What protects its payload depends on pattern and message: that of the first one of XX is sent
// in the clear.
wraith_status_t wraith_handshake_write(wraith_handshake_t handshake,
                                       const uint8_t *payload,
                                       size_t payload_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Reads the next message of the other side, and gives its payload, which may be empty. `WRAITH_UNAUTHENTIC` if it is not
// the right one, which may still come. `WRAITH_REPLAYED` if it is the one before again: `wraith_handshake_repeat` has what
// answers it.
wraith_status_t wraith_handshake_read(wraith_handshake_t handshake,
                                      const uint8_t *message,
                                      size_t message_len,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// The message that was written last, once more.
wraith_status_t wraith_handshake_repeat(wraith_handshake_t handshake,
                                        uint8_t *out,
                                        size_t out_cap,
                                        size_t *out_len);

// The hash of everything said: equal on both sides, and different in any two handshakes. Complete at the end.
wraith_status_t wraith_handshake_hash(wraith_handshake_t handshake,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// The other side's public Noise key (32 bytes); `WRAITH_NOT_FOUND` while it is not known.
wraith_status_t wraith_handshake_remote_key(wraith_handshake_t handshake,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len);

// The other side's NodeId (32 bytes), once it is proved; `WRAITH_NOT_FOUND` before, and of a side without an identity.
wraith_status_t wraith_handshake_peer(wraith_handshake_t handshake,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// Gives out the session, once, when the handshake is over. The handshake stays, to answer a message that comes again.
wraith_status_t wraith_handshake_session(wraith_handshake_t handshake,
                                         wraith_session_t *out);

// Frees it, and wipes its secrets. Its session stays.
wraith_status_t wraith_handshake_free(wraith_handshake_t handshake);

// New prekeys of an identity, `one_time` of them for one conversation each. They are in memory: save them before a bundle
// leaves and after each conversation that they started, or let `wraith_prekeys_generate_in_vault` do all that.
wraith_status_t wraith_prekeys_generate(wraith_identity_t identity,
                                        size_t one_time,
                                        wraith_prekeys_t *out);

// A bundle for one initiator, to be published; it takes a one-time prekey with it while there are some. Needs room for
// `WRAITH_BUNDLE_MAX`.
wraith_status_t wraith_prekeys_bundle(wraith_prekeys_t prekeys,
                                      uint8_t *out,
                                      size_t out_cap,
                                      size_t *out_len);

// How many one-time prekeys have not been handed out.
wraith_status_t wraith_prekeys_remaining(wraith_prekeys_t prekeys, size_t *out);

// Makes one-time prekeys until `one_time` of them have not been handed out.
wraith_status_t wraith_prekeys_replenish(wraith_prekeys_t prekeys,
                                         wraith_identity_t identity,
                                         size_t one_time);

// Makes new signed prekeys, every week or so. Those before stay for first messages that are under way.
wraith_status_t wraith_prekeys_rotate(wraith_prekeys_t prekeys,
                                      wraith_identity_t identity);

// The prekeys as bytes, secrets included, without a checksum, for a caller who has no vault; `wraith_prekeys_keep` is the
// better way. `WRAITH_INVALID_STATE` if they are kept in a vault.
wraith_status_t wraith_prekeys_save(wraith_prekeys_t prekeys,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// The prekeys of these bytes.
wraith_status_t wraith_prekeys_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_prekeys_t *out);

// Frees them, and wipes their secrets.
wraith_status_t wraith_prekeys_free(wraith_prekeys_t prekeys);

// The room that `wraith_ratchet_encrypt` wants for a text of `text_len` bytes; the message may be shorter.
wraith_status_t wraith_ratchet_room(size_t text_len,
                                    size_t *out_len);

// Starts a conversation with the owner of a published bundle, who may be away. Whether that is who you want to talk with:
// `wraith_ratchet_peer`.
wraith_status_t wraith_ratchet_initiate(wraith_identity_t identity,
                                        const uint8_t *bundle,
                                        size_t bundle_len,
                                        wraith_ratchet_t *out);

// The NodeId (32 bytes) of who sends `message`, if it is a first one; `WRAITH_NOT_FOUND` if not. Nothing is authentic yet.
wraith_status_t wraith_ratchet_initiator_of(const uint8_t *message,
                                            size_t message_len,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len);

// Starts the conversation that `message` asks for, and opens it. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`. Its
// one-time prekey is gone then. If there is a conversation with that side already, try `wraith_ratchet_decrypt` first.
// `WRAITH_INVALID_STATE` if the prekeys are kept in a vault: `wraith_ratchet_respond_in_vault`.
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

// Encrypts `text`. `aad` is not sent, and has to be the same when it is decrypted. Needs the room that `wraith_ratchet_room`
// says. A ratchet in a vault is stored before this returns; any other one is to be saved before the message leaves.
wraith_status_t wraith_ratchet_encrypt(wraith_ratchet_t ratchet,
                                       const uint8_t *aad,
                                       size_t aad_len,
                                       const uint8_t *text,
                                       size_t text_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Decrypts `message`. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`. `WRAITH_REPLAYED` if it was decrypted before,
// or came too late. A ratchet in a vault is stored before this returns; any other one is to be saved before what the message
// says is acted on.
wraith_status_t wraith_ratchet_decrypt(wraith_ratchet_t ratchet,
                                       const uint8_t *aad,
                                       size_t aad_len,
                                       const uint8_t *message,
                                       size_t message_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// The other side's NodeId: 32 bytes.
wraith_status_t wraith_ratchet_peer(wraith_ratchet_t ratchet,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// 32 bytes that both sides of this conversation have and no other one has, to be compared over another medium.
wraith_status_t wraith_ratchet_binding(wraith_ratchet_t ratchet,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// 1 if lengths are to be hidden in buckets, for up to 12 % more bytes; 0, as at first, if not.
wraith_status_t wraith_ratchet_set_padding(wraith_ratchet_t ratchet, uint32_t padding);

// Tells the time in milliseconds, from any beginning that stays the same: keys of missing messages expire by it. It is to be
// told again after `wraith_ratchet_keep`, `wraith_ratchet_load` and `wraith_ratchet_restore`.
wraith_status_t wraith_ratchet_set_time(wraith_ratchet_t ratchet,
                                        uint64_t now_ms);

// The conversation as bytes, secrets included, without a checksum, for a caller who has no vault; `wraith_ratchet_keep` is the
// better way. One that is restored from older bytes than the last has to be started anew. `WRAITH_INVALID_STATE` if it is
// kept in a vault.
wraith_status_t wraith_ratchet_save(wraith_ratchet_t ratchet,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// The conversation of these bytes.
wraith_status_t wraith_ratchet_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_ratchet_t *out);

// Frees it, and wipes its keys.
wraith_status_t wraith_ratchet_free(wraith_ratchet_t ratchet);

// Encrypts `count` texts with the same `aad`, in this order and one behind the other into `out`: `results`, an array of
// `count`, says where each message is. Needs the room that `wraith_ratchet_room` says for each of them. All are encrypted, or
// none: `failed`, which may be NULL, gets the index of the first that cannot be. A ratchet in a vault is stored once, before
// this returns.
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

// Decrypts `count` messages with the same `aad`, each judged by itself: `results`, an array of `count`, says what became of
// each, and where its text is in `out`. That needs room for all messages less `WRAITH_RATCHET_OVERHEAD` bytes each. Of two
// that are the same, the first is decrypted. The call is `WRAITH_OK` also if some are not. A ratchet in a vault is stored once,
// before this returns; if its vault fails, none of them was decrypted.
wraith_status_t wraith_ratchet_decrypt_many(wraith_ratchet_t ratchet,
                                            const uint8_t *aad,
                                            size_t aad_len,
                                            const struct wraith_bytes_t *messages,
                                            size_t count,
                                            uint8_t *out,
                                            size_t out_cap,
                                            size_t *out_len,
                                            struct wraith_ratchet_result_t *results);

// Seals `text` for the identity `node_id` (32 bytes): `text_len + WRAITH_SEALED_BOX_OVERHEAD` bytes that only its owner
// opens; who wrote it is not proved. `context` says what for: it is not sent, and has to be the same when it is opened.
wraith_status_t wraith_sealed_box_seal(const uint8_t *node_id,
                                       size_t node_id_len,
                                       const uint8_t *context,
                                       size_t context_len,
                                       const uint8_t *text,
                                       size_t text_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Opens a box: its text is `sealed_len - WRAITH_SEALED_BOX_OVERHEAD` bytes.
wraith_status_t wraith_sealed_box_open(wraith_identity_t identity,
                                       const uint8_t *context,
                                       size_t context_len,
                                       const uint8_t *sealed,
                                       size_t sealed_len,
                                       uint8_t *out,
                                       size_t out_cap,
                                       size_t *out_len);

// Seals `text`: the message is `text_len + WRAITH_SESSION_OVERHEAD` bytes. `aad` is not sent, and has to be the same when it
// is opened. `number`, which may be NULL, gets the message's number.
wraith_status_t wraith_session_seal(wraith_session_t session,
                                    const uint8_t *aad,
                                    size_t aad_len,
                                    const uint8_t *text,
                                    size_t text_len,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len,
                                    uint64_t *number);

// Opens `message`: its text is `message_len - WRAITH_SESSION_OVERHEAD` bytes. `WRAITH_UNAUTHENTIC` if the other side did not
// seal it, `WRAITH_REPLAYED` if it was opened before or is older than the last 2048. `number` may be NULL.
wraith_status_t wraith_session_open(wraith_session_t session,
                                    const uint8_t *aad,
                                    size_t aad_len,
                                    const uint8_t *message,
                                    size_t message_len,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len,
                                    uint64_t *number);

// Seals `count` texts with the same `aad`, one behind the other into `out`, each `WRAITH_SESSION_OVERHEAD` bytes longer than
// its text. All are sealed, or none: `failed`, which may be NULL, gets the index of the first that cannot be.
wraith_status_t wraith_session_seal_many(wraith_session_t session,
                                         const uint8_t *aad,
                                         size_t aad_len,
                                         const struct wraith_bytes_t *texts,
                                         size_t count,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len,
                                         size_t *failed);

// Opens `count` messages with the same `aad`, each judged by itself: `results`, an array of `count`, says what became of each,
// and where its text is in `out`. That needs room for all messages less `WRAITH_SESSION_OVERHEAD` bytes each. Of two that
// are the same, the first is opened. The call is `WRAITH_OK` also if some are not.
wraith_status_t wraith_session_open_many(wraith_session_t session,
                                         const uint8_t *aad,
                                         size_t aad_len,
                                         const struct wraith_bytes_t *messages,
                                         size_t count,
                                         uint8_t *out,
                                         size_t out_cap,
                                         size_t *out_len,
                                         struct wraith_opened_t *results);

// Tells the time in milliseconds, from any beginning that stays the same: keys then change every ten minutes. Without, they
// change by the number of messages and bytes only.
wraith_status_t wraith_session_set_time(wraith_session_t session,
                                        uint64_t now_ms);

// The session as bytes, as secret as itself; needs room for `WRAITH_SESSION_SAVED_MAX`. From the first time on the session
// seals 512 further messages at most before `wraith_session_stored` says that these bytes are where a restore will find them;
// then `wraith_session_seal` gives `WRAITH_INVALID_STATE`. One that is kept in a vault needs none of this.
wraith_status_t wraith_session_save(wraith_session_t session,
                                    uint8_t *out,
                                    size_t out_cap,
                                    size_t *out_len);

// Says that what was saved last is stored, and nothing older. `WRAITH_INVALID_STATE` if nothing was saved since the last time.
wraith_status_t wraith_session_stored(wraith_session_t session);

// The session of these bytes. It seals nothing before it is saved and stored anew. `WRAITH_UNAUTHENTIC` if they are damaged
// or of an unknown version.
wraith_status_t wraith_session_restore(const uint8_t *saved,
                                       size_t saved_len,
                                       wraith_session_t *out);

// Frees it, and wipes its keys.
wraith_status_t wraith_session_free(wraith_session_t session);

// The vault that is a folder, which is made where it is missing. Its records are not encrypted beside what the disk is. One
// process at a time has it.
wraith_status_t wraith_vault_folder(const uint8_t *folder,
                                    size_t folder_len,
                                    wraith_vault_t *out);

// A vault of your own. `store`, `load` and `remove` have to be there.
wraith_status_t wraith_vault_new(const struct wraith_vault_callbacks_t *callbacks,
                                 wraith_vault_t *out);

// Keeps a session in a vault from now on, under a name (1 to 64 of a-z, A-Z, 0-9, `-`, `_`) that is not in use:
// `WRAITH_CONFLICT` if it is. What is sealed or opened is then in the vault before the call returns. A process that is
// killed at any moment and loads it uses no number twice and opens nothing twice.
wraith_status_t wraith_session_keep(wraith_session_t session,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// The session that is kept under this name. `WRAITH_NOT_FOUND` if there is none, `WRAITH_CONFLICT` if the vault was rolled
// back and knows it.
wraith_status_t wraith_session_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_session_t *out);

// New prekeys of an identity, kept in a vault under a name that is not in use: `WRAITH_CONFLICT` if it is. `one_time` of them
// are for one conversation each. A bundle that is handed out, and a prekey that is used, is in the vault as such before anybody
// sees it.
wraith_status_t wraith_prekeys_generate_in_vault(wraith_vault_t vault,
                                                 const uint8_t *name,
                                                 size_t name_len,
                                                 wraith_identity_t identity,
                                                 size_t one_time,
                                                 wraith_prekeys_t *out);

// Keeps prekeys that were in memory in a vault from now on, as `wraith_session_keep` does. Where it fails they stay in memory;
// after `WRAITH_VAULT_FAILED` there may be a record all the same, which `wraith_vault_remove` removes.
wraith_status_t wraith_prekeys_keep(wraith_prekeys_t prekeys,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// The prekeys that are kept under this name; fails as `wraith_session_load` does.
wraith_status_t wraith_prekeys_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_prekeys_t *out);

// As `wraith_ratchet_initiate`; the conversation is kept in a vault from its beginning, under a name that is not in use:
// `WRAITH_CONFLICT` if it is. What is encrypted or decrypted is in the vault before the call returns, and a vault that fails
// changes nothing.
wraith_status_t wraith_ratchet_initiate_in_vault(wraith_vault_t vault,
                                                 const uint8_t *name,
                                                 size_t name_len,
                                                 wraith_identity_t identity,
                                                 const uint8_t *bundle,
                                                 size_t bundle_len,
                                                 wraith_ratchet_t *out);

// As `wraith_ratchet_respond`; the conversation is kept in a vault from its beginning. The prekeys have to be in a vault too,
// the same or another one: `WRAITH_INVALID_STATE` if they are not.
//
// The conversation is stored first, then its prekeys as used, then the text is given out. A call that was cut off, or
// whose vault has failed, is made again with the same message and name, and ends as it would have. So let the name follow from
// `wraith_ratchet_initiator_of`, and bring every message that has an initiator here first. If this gives `WRAITH_CONFLICT`,
// `WRAITH_NOT_FOUND` or `WRAITH_REPLAYED`, bring it to `wraith_ratchet_decrypt` of the conversation of that name.
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

// Keeps a conversation that was in memory in a vault from now on, as `wraith_session_keep` does. Where it fails it stays in
// memory; after `WRAITH_VAULT_FAILED` there may be a record all the same, which `wraith_vault_remove` removes.
wraith_status_t wraith_ratchet_keep(wraith_ratchet_t ratchet,
                                    wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len);

// The conversation that is kept under this name; fails as `wraith_session_load` does. Of two that load it one fails with
// `WRAITH_CONFLICT` before it gives out anything.
wraith_status_t wraith_ratchet_load(wraith_vault_t vault,
                                    const uint8_t *name,
                                    size_t name_len,
                                    wraith_ratchet_t *out);

// Removes the record of this name, if there is one. What is kept there must be freed before.
wraith_status_t wraith_vault_remove(wraith_vault_t vault, const uint8_t *name, size_t name_len);

// Frees the handle. The vault stays open while anything is kept in it.
wraith_status_t wraith_vault_free(wraith_vault_t vault);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WRAITH_H */
