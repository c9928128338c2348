//! The examples of each command, for the help and for the man pages.

/// A command line, and its effect.
type Example = (&'static str, &'static str);

/// The examples of a command, by its words after `wraith`.
pub const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "crypto",
        &[
            ("wraith crypto hash sha-256 film.mov", "Hash a file, as sha256sum does"),
            ("wraith crypto enc -p notes.txt -o notes.enc", "Encrypt a file with a passphrase"),
            ("wraith crypto list", "List all algorithms"),
        ],
    ),
    (
        "crypto hash",
        &[
            ("wraith crypto hash sha-256 film.mov", "As sha256sum does"),
            ("wraith crypto hash blake2b *.mov", "Several files"),
            ("tar c photos | wraith crypto hash sm3", "The output of a command"),
        ],
    ),
    (
        "crypto mac",
        &[
            ("wraith crypto genkey hmac-sha-256 -o mac.key", "Make a key"),
            ("wraith crypto mac hmac-sha-256 -k mac.key film.mov", "Authenticate a file with it"),
        ],
    ),
    (
        "crypto enc",
        &[
            ("wraith crypto enc -p notes.txt -o notes.enc", "With a passphrase"),
            ("wraith crypto enc --to anna.pub notes.txt -o notes.enc", "For the owner of a key"),
            ("tar c photos | wraith crypto enc -k my.key > photos.enc", "A pipe, with a key"),
        ],
    ),
    (
        "crypto dec",
        &[
            ("wraith crypto dec -p notes.enc -o notes.txt", "With the passphrase"),
            ("wraith crypto dec -k my.pem notes.enc -o notes.txt", "With the private key"),
            ("wraith crypto dec -k my.key photos.enc | tar x", "Into another program"),
        ],
    ),
    (
        "crypto genkey",
        &[
            ("wraith crypto genkey x-wing -o my.pem", "A key pair, for enc --to"),
            ("wraith crypto genkey ed25519 -o sign.pem", "A key pair, to sign with"),
            ("wraith crypto genkey aes-256-gcm -o my.key", "A secret key"),
        ],
    ),
    ("crypto pub", &[("wraith crypto pub my.pem -o my.pub", "For others to use")]),
    (
        "crypto sign",
        &[
            ("wraith crypto sign -k sign.pem film.mov -o film.sig", "Sign a file"),
            (
                "wraith crypto sign -k rsa.pem -a rsa-pss-sha-512 film.mov -o film.sig",
                "With one of the algorithms of an RSA key",
            ),
        ],
    ),
    (
        "crypto verify",
        &[("wraith crypto verify -k sign.pub -s film.sig film.mov", "Exits with 0 or 8")],
    ),
    (
        "crypto kem",
        &[
            (
                "wraith crypto kem encapsulate -k anna.pub -s secret.hex -o for-anna",
                "Make a secret, and send for-anna",
            ),
            ("wraith crypto kem decapsulate -k my.pem for-anna", "Print the same secret"),
        ],
    ),
    (
        "crypto rand",
        &[
            ("wraith crypto rand 32 --hex", "A random number to copy"),
            ("wraith crypto rand 1000 -o noise", "Random bytes in a file"),
        ],
    ),
    (
        "crypto list",
        &[
            ("wraith crypto list", "All algorithms"),
            ("wraith crypto list kem", "Those for key encapsulation"),
        ],
    ),
    (
        "speed",
        &[
            ("wraith speed sha-256", "One algorithm"),
            ("wraith speed verify --seconds 200ms", "All signature checks, a short time each"),
            ("wraith speed aes-256-gcm --bytes 64,8192", "Two lengths of the text"),
        ],
    ),
];
