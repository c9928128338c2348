//! The arguments of `wraith crypto`. None of its options is a setting: each says what one command is about.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::units::plain_bytes;

#[derive(Args, Clone, Debug)]
pub struct CryptoArgs {
    /// What to do
    #[command(subcommand)]
    pub action: CryptoAction,
}

#[derive(Clone, Debug, Subcommand)]
pub enum CryptoAction {
    /// Print the hash of files or of standard input
    Hash(HashWithArgs),
    /// Print the authentication code of files or of standard input
    Mac(MacArgs),
    /// Encrypt a file or standard input, so that any change of it is found
    Enc(EncArgs),
    /// Decrypt what `enc` has written
    Dec(DecArgs),
    /// Make a new key
    Genkey(GenkeyArgs),
    /// Print the public half of a key pair
    Pub(PubArgs),
    /// Sign a file or standard input
    Sign(SignArgs),
    /// Check the signature of a file or of standard input
    Verify(CheckArgs),
    /// Make a secret that only the owner of a key can open, or open one
    Kem(KemArgs),
    /// Print random bytes
    Rand(RandArgs),
    /// List the algorithms: kind, name, standard, and what computes them here
    List(ListArgs),
}

/// Where the result goes.
#[derive(Args, Clone, Debug)]
pub struct OutArgs {
    /// File to write; it appears when all of it is written. Without it, or with -, standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Clone, Debug)]
pub struct HashWithArgs {
    /// The hash function; `wraith crypto list hash` has their names
    pub algorithm: String,

    /// Files; - or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct MacArgs {
    /// The algorithm; `wraith crypto list mac` has their names
    pub algorithm: String,

    /// File with the key in hexadecimal
    #[arg(short, long, value_name = "FILE")]
    pub key: PathBuf,

    /// The nonce in hexadecimal, for GMAC: never the same twice under one key
    #[arg(long, value_name = "HEX")]
    pub nonce: Option<String>,

    /// Files; - or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// An unauthenticated mode, as other programs have it.
#[derive(Args, Clone, Debug)]
pub struct RawArgs {
    /// Only the cipher's output, without salt, head and tag, as `openssl enc -K -iv` has it: nobody notices when it is changed
    #[arg(long, requires = "algorithm", requires = "key")]
    pub raw: bool,

    /// The IV in hexadecimal, for --raw
    #[arg(long, value_name = "HEX", requires = "raw")]
    pub iv: Option<String>,

    /// No padding: the text is whole blocks already
    #[arg(long, requires = "raw")]
    pub no_padding: bool,
}

#[derive(Args, Clone, Debug)]
pub struct EncArgs {
    /// File to encrypt; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The AEAD, or with --raw the cipher [default: AES-256-GCM where the processor has it, else ChaCha20-Poly1305]
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<String>,

    /// File with the key in hexadecimal, as `wraith crypto genkey` makes it
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["passphrase", "passphrase_file", "to"])]
    pub key: Option<PathBuf>,

    /// Ask for a passphrase at the terminal
    #[arg(short, long, conflicts_with_all = ["passphrase_file", "to", "raw"])]
    pub passphrase: bool,

    /// File whose first line is the passphrase
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "raw"])]
    pub passphrase_file: Option<PathBuf>,

    /// Encrypt for the owner of this public key: a KEM's, in PEM
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub to: Option<PathBuf>,

    #[command(flatten)]
    pub raw: RawArgs,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct DecArgs {
    /// File to decrypt; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The cipher, with --raw; else the file says it
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<String>,

    /// File with the key in hexadecimal, or with the private key in PEM
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["passphrase", "passphrase_file"])]
    pub key: Option<PathBuf>,

    /// Ask for the passphrase at the terminal
    #[arg(short, long, conflicts_with_all = ["passphrase_file", "raw"])]
    pub passphrase: bool,

    /// File whose first line is the passphrase
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    pub raw: RawArgs,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct GenkeyArgs {
    /// What it is for: a signature algorithm or a KEM (a key pair), or a cipher, an AEAD or a MAC (a key in hexadecimal)
    pub algorithm: String,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct PubArgs {
    /// File with the private key in PEM; - is standard input
    #[arg(value_name = "FILE")]
    pub key: PathBuf,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct SignArgs {
    /// File to sign; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// File with the private key in PEM
    #[arg(short, long, value_name = "FILE")]
    pub key: PathBuf,

    /// The algorithm, where the key has several: RSA [default: RSA-PSS-SHA-256]
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<String>,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// File that was signed; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// File with the public key in PEM
    #[arg(short, long, value_name = "FILE")]
    pub key: PathBuf,

    /// File with the signature
    #[arg(short, long, value_name = "FILE")]
    pub signature: PathBuf,

    /// The algorithm, where the key has several: RSA [default: RSA-PSS-SHA-256]
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub struct KemArgs {
    /// What to do
    #[command(subcommand)]
    pub action: KemAction,
}

#[derive(Clone, Debug, Subcommand)]
pub enum KemAction {
    /// Make a new secret, and the ciphertext that carries it to the owner of a key
    Encapsulate {
        /// File with the public key in PEM
        #[arg(short, long, value_name = "FILE")]
        key: PathBuf,

        /// File for the secret, in hexadecimal
        #[arg(short, long, value_name = "FILE")]
        secret: PathBuf,

        /// The ciphertext, for the owner of the key
        #[command(flatten)]
        out: OutArgs,
    },
    /// Open the secret in a ciphertext; a ciphertext that was made for another key gives a secret that nobody else has
    Decapsulate {
        /// File with the ciphertext; - or none is standard input
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,

        /// File with the private key in PEM
        #[arg(short, long, value_name = "FILE")]
        key: PathBuf,

        /// The secret, in hexadecimal
        #[command(flatten)]
        out: OutArgs,
    },
}

#[derive(Args, Clone, Debug)]
pub struct RandArgs {
    /// How many
    #[arg(value_parser = plain_bytes)]
    pub bytes: u64,

    /// In hexadecimal, in one line
    #[arg(long)]
    pub hex: bool,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Only these
    #[arg(value_name = "KIND")]
    pub kind: Option<Kind>,
}

/// The kinds of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Hash functions
    Hash,
    /// Ciphers without authentication
    Cipher,
    /// Authenticated encryption
    Aead,
    /// Message authentication codes
    Mac,
    /// Signatures
    Sign,
    /// Key agreements
    Agree,
    /// Key encapsulation
    Kem,
    /// Public-key encryption
    Encrypt,
}

impl Kind {
    /// As one types it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Cipher => "cipher",
            Self::Aead => "aead",
            Self::Mac => "mac",
            Self::Sign => "sign",
            Self::Agree => "agree",
            Self::Kem => "kem",
            Self::Encrypt => "encrypt",
        }
    }
}
