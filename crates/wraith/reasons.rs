// Every kind of failure, once for all languages: the name of its exception in Python, Kotlin and
// Swift, its status and number in C, and the exit code of the program. `src/error.rs`,
// `crates/wraith-c/src/status.rs` and `crates/wraith-ffi/src/error.rs` include this file, and each
// defines the macros. A number is never changed or used again.
reasons! {
    // Kinds of both transfers and sessions.
    both {
        /// An argument or option is invalid, such as a path, name, code, ticket, key or length.
        InvalidInput WRAITH_INVALID_INPUT = 1, exit Usage;
        /// No address answered, no peer came, or the named item does not exist.
        NotFound WRAITH_NOT_FOUND = 11, exit PeerNotFound;
        /// The peer violated the protocol.
        Protocol WRAITH_PROTOCOL = 20, exit Other;
    }
    // Further kinds of `wraith::ErrorKind`.
    transfers {
        /// The user of the other side declined.
        Refused WRAITH_REFUSED = 12, exit Refused;
        /// After a reconnect, the sender made another offer than the accepted one.
        OfferChanged WRAITH_OFFER_CHANGED = 13, exit Refused;
        /// The words are wrong, the code is used or expired, or the ticket names no offer of the
        /// sender.
        WrongCode WRAITH_WRONG_CODE = 14, exit WrongCode;
        /// The connection was lost and not restored in time. The same transfer can be resumed.
        NetworkLost WRAITH_NETWORK_LOST = 15, exit NetworkLost;
        /// A disk is full, read-only or unreadable. The same transfer can be resumed.
        Disk WRAITH_DISK = 16, exit Disk;
        /// Data does not match its hash.
        Verification WRAITH_VERIFICATION = 17, exit Verification;
        /// The peer sent a name that could escape the target folder.
        UnsafeName WRAITH_UNSAFE_NAME = 18, exit UnsafeName;
        /// The transfer is complete except for some files that could not be transferred.
        Partial WRAITH_PARTIAL = 19, exit Partial;
        /// One of the two sides cancelled. The same transfer can be resumed.
        Cancelled WRAITH_CANCELLED = 21, exit NetworkLost;
        /// The receiver postponed its answer to the offer, which stays valid.
        Postponed WRAITH_POSTPONED = 22, exit Other;
        /// Another program with the same identity receives the offer; its user accepted first.
        ReceivedElsewhere WRAITH_RECEIVED_ELSEWHERE = 23, exit Other;
        /// The reader or writer of a byte stream failed. For a target in memory, the content exceeds
        /// its limit.
        Stream WRAITH_STREAM = 26, exit Disk;
        /// The program of one side panicked.
        Panicked WRAITH_PROGRAM_PANICKED = 27, exit Other;
    }
    // Further kinds of `wraith_session::Reason`.
    sessions {
        /// The call is not allowed in this state. For example, the handshake expects the peer's
        /// message, or the saved session has no reserved numbers left.
        WrongState WRAITH_INVALID_STATE = 4,
        /// A message, signature or saved state does not authenticate: another party made it, or it
        /// was changed. Nothing has changed.
        Unauthentic WRAITH_UNAUTHENTIC = 5,
        /// The message was received before. Nothing has changed.
        Replayed WRAITH_REPLAYED = 6,
        /// A limit is reached: handles, messages of a session, prekeys, or a configured limit.
        Exhausted WRAITH_EXHAUSTED = 7,
        /// The vault has failed.
        Vault WRAITH_VAULT_FAILED = 8,
        /// The vault already has a record of this name, or a newer one: it is in use elsewhere, or
        /// was rolled back. Continuing would reuse keys.
        Conflict WRAITH_CONFLICT = 24,
        /// The message is so late that it is no longer opened. It may have been received before.
        /// Nothing has changed.
        TooOld WRAITH_TOO_OLD = 25,
    }
    // Kinds of the libraries themselves.
    libraries {
        /// The system has no randomness.
        NoRandomness WRAITH_NO_RANDOMNESS = 9,
        /// Any other error.
        Other WRAITH_OTHER = 98,
    }
    // Kinds that only C has, as numbers.
    c {
        /// Success.
        WRAITH_OK = 0,
        /// The handle is 0, was freed, or is of another kind.
        WRAITH_INVALID_HANDLE = 2,
        /// The caller's buffer is too small. `*out_len` is the required size, and nothing has
        /// changed.
        WRAITH_BUFFER_TOO_SMALL = 3,
        /// The operation is still running after the time limit. It continues.
        WRAITH_TIMED_OUT = 10,
        /// The peer has reset the stream of a raw connection.
        WRAITH_STREAM_RESET = 28,
        /// The peer has stopped reading the stream of a raw connection.
        WRAITH_STREAM_STOPPED = 29,
        /// The raw connection has ended.
        WRAITH_CONNECTION_CLOSED = 30,
        /// A bug in the library. The affected object is unusable; all others still work.
        WRAITH_PANICKED = 99,
    }
    // Kinds that only exceptions have, with the status of C in their place.
    exceptions {
        /// The peer has another identity than expected, or does not prove its identity.
        WrongPeer WRAITH_UNAUTHENTIC,
    }
    // Kinds of neither, with the exception and the status in their place.
    neither {
        Malformed Protocol WRAITH_UNAUTHENTIC,
    }
}

// The errors of `wraith_session`. Each has a `reason()`.
session_errors! {
    HandshakeError,
    SealError,
    OpenError,
    BatchError<SealError>,
    StateError,
    StoreError,
    VaultError,
    StartError,
    EncryptError,
    DecryptError,
    BatchError<EncryptError>,
    FragmentError,
    SealedBoxError,
}
