//! Commands and options of other programs (age, openssl), and their replacements.

use wraith_command_text::foreign::{ForeignOption, LEFT_OUT, option};

/// Names of commands that other programs have, and the commands that do the same.
pub const FOREIGN_COMMANDS: &[(&[&str], &str)] = &[
    (&["keygen", "genkey"], "wraith crypto genkey ALGORITHM"),
    (&["enc", "encrypt"], "wraith crypto enc FILE"),
    (&["dec", "decrypt"], "wraith crypto dec FILE"),
    (&["sign"], "wraith crypto sign -k KEY FILE"),
    (
        &["dgst", "sum", "checksum", "sha256", "sha256sum", "b3sum"],
        "wraith crypto hash sha-256 FILE",
    ),
];

/// The first entry with the name and the command counts.
pub const FOREIGN_OPTIONS: &[ForeignOption] = &[
    option(
        &["-c", "--check"],
        &["crypto hash"],
        "wraith crypto hash prints hashes",
        "to check a list of them: sha256sum -c LIST",
    ),
    option(
        &["-r", "--recipient", "-R", "--recipients-file"],
        &["crypto enc"],
        "--to names the file with the recipient's public key",
        "--to FILE",
    ),
    option(
        &["-i", "--identity", "-inkey", "-key"],
        &["crypto enc", "crypto dec", "crypto sign", "crypto verify"],
        "-k names the file with the key",
        "-k FILE",
    ),
    option(
        &["-d", "--decrypt"],
        &["crypto enc", "crypto"],
        "decrypting is a command",
        "wraith crypto dec",
    ),
    option(
        &["-e", "--encrypt"],
        &["crypto enc", "crypto"],
        "encrypting is a command",
        "wraith crypto enc",
    ),
    option(
        &["--armor", "-base64", "-A", "--base64"],
        &["crypto enc", "crypto dec"],
        "the output is binary",
        "wraith crypto enc FILE | base64",
    ),
    option(
        &["-in", "--in", "--input"],
        &[
            "crypto enc",
            "crypto dec",
            "crypto sign",
            "crypto verify",
            "crypto hash",
            "crypto mac",
            "crypto pub",
        ],
        "the input is an argument without an option",
        "leave -in out, and keep the name of the file",
    ),
    option(
        &["-pass", "--pass", "-kfile", "--password"],
        &["crypto enc", "crypto dec"],
        "--passphrase asks for the passphrase, and --passphrase-file reads it",
        "--passphrase-file FILE",
    ),
    option(
        &["-K"],
        &["crypto enc", "crypto dec"],
        "-k names a file with the key in hexadecimal, because other users of the machine see arguments",
        "-k FILE",
    ),
    option(
        &["-pbkdf2", "-iter", "-salt", "-nosalt", "-md", "-S"],
        &["crypto enc", "crypto dec"],
        "a passphrase always goes through Argon2id with a new salt",
        LEFT_OUT,
    ),
    option(
        &["-nopad"],
        &["crypto enc", "crypto dec"],
        "--no-padding turns padding off",
        "--no-padding",
    ),
    option(
        &["-sha1", "-sha256", "-sha384", "-sha512", "-md5", "-sha3-256"],
        &["crypto hash"],
        "the hash function is the first argument",
        "wraith crypto hash SHA-256 FILE",
    ),
];
