//! The Double Ratchet with header encryption, for conversations whose sides are seldom there at the same time.
