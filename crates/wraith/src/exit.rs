//! Exit codes of the `wraith` program. Its JSON events also name them.

macro_rules! exits {
    ($($(#[$doc:meta])* $exit:ident = $number:literal, $name:literal, $meaning:literal;)*) => {
        /// Exit codes. Scripts rely on them, so a code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit {
            $($(#[$doc])* $exit = $number,)*
        }

        impl Exit {
            /// All exit codes except success, in ascending order.
            pub const ALL: &[Self] = &[$(Self::$exit,)*];

            /// Returns the meaning, for people. docs/GUIDE.md has a longer text.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$exit => $meaning,)* }
            }

            /// Returns the name for programs, the `code` of JSON events.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$exit => $name,)* }
            }
        }
    };
}

exits! {
    /// Any failure without a code of its own.
    Other = 1, "other", "other";
    /// The command line is invalid.
    Usage = 2, "usage", "usage";
    /// No address answered, or no peer came.
    PeerNotFound = 3, "peer_not_found", "peer not found";
    /// One of the two users declined.
    Refused = 4, "refused", "refused";
    /// The ticket matches no offer of the sender.
    WrongCode = 5, "wrong_code", "wrong code or ticket";
    /// The connection was lost and did not come back; the same command resumes.
    NetworkLost = 6, "network_lost", "network lost (run again to continue)";
    /// The disk is full, read-only or unreadable; the same command resumes.
    Disk = 7, "disk", "disk (run again to continue)";
    /// Bytes do not match their hash, or the peer violated the protocol.
    Verification = 8, "verification_failed", "verification failed";
    /// Done, except for some files.
    Partial = 10, "partial", "some files were not transferred";
    /// The peer used a name that could escape from the target folder.
    UnsafeName = 11, "unsafe_name", "unsafe name refused";
    /// The terminal was closed.
    HungUp = 129, "hung_up", "terminal closed";
    /// Ctrl-C.
    Interrupted = 130, "interrupted", "interrupted";
    /// Ctrl-\.
    Quit = 131, "quit", "quit";
    /// SIGTERM.
    Terminated = 143, "terminated", "terminated";
}
