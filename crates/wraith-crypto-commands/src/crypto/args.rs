//! The arguments of `wraith crypto`. None of its options is a setting: each belongs to one run of
//! one command.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use wraith_command_text::units::plain_bytes;

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
    /// Encrypt a file or standard input, so that any change is detected
    Enc(EncArgs),
    /// Decrypt the output of `enc`
    Dec(DecArgs),
    /// Make a new key
    Genkey(GenkeyArgs),
    /// Print the public half of a key pair
    Pub(PubArgs),
    /// Sign a file or standard input
    Sign(SignArgs),
    /// Check the signature of a file or of standard input
    Verify(CheckArgs),
    /// Make a shared secret that only the owner of a key can open, or open one
    Kem(KemArgs),
    /// Print random bytes
    Rand(RandArgs),
    /// List the algorithms: kind, name, standard, and implementation on this machine
    List(ListArgs),
}

/// The destination of the result.
#[derive(Args, Clone, Debug)]
pub struct OutArgs {
    /// File to write; it appears once it is complete. Without it, or with -, standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Clone, Debug)]
pub struct HashWithArgs {
    /// The hash function; `wraith crypto list hash` lists the names
    pub algorithm: String,

    /// Files; - or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct MacArgs {
    /// The algorithm; `wraith crypto list mac` lists the names
    pub algorithm: String,

    /// File with the key in hexadecimal
    #[arg(short, long, value_name = "FILE")]
    pub key: PathBuf,

    /// The nonce in hexadecimal, for GMAC: never use one twice with the same key
    #[arg(long, value_name = "HEX")]
    pub nonce: Option<String>,

    /// Files; - or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Options of the unauthenticated modes, compatible with other programs.
#[derive(Args, Clone, Debug)]
pub struct RawArgs {
    /// Only the cipher's output, without salt, header and tag, as `openssl enc -K -iv` writes it:
    /// changes are not detected
    #[arg(long, requires = "algorithm", requires = "key")]
    pub raw: bool,

    /// The IV in hexadecimal, for --raw
    #[arg(long, value_name = "HEX", requires = "raw")]
    pub iv: Option<String>,

    /// No padding: the input is a whole number of blocks
    #[arg(long, requires = "raw")]
    pub no_padding: bool,
}

#[derive(Args, Clone, Debug)]
pub struct EncArgs {
    /// File to encrypt; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The AEAD, or with --raw the cipher [default: AES-256-GCM where the processor supports it,
    /// else ChaCha20-Poly1305]
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

    /// File with the recipient's public key: a KEM key in PEM
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

    /// The cipher, with --raw; otherwise the file names it
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
    /// Algorithm of the key: a signature algorithm or a KEM (makes a key pair), or a cipher, an
    /// AEAD or a MAC (makes a key in hexadecimal)
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

    /// The algorithm, for keys that have several: RSA [default: RSA-PSS-SHA-256]
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<String>,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The signed file; - or none is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// File with the public key in PEM
    #[arg(short, long, value_name = "FILE")]
    pub key: PathBuf,

    /// File with the signature
    #[arg(short, long, value_name = "FILE")]
    pub signature: PathBuf,

    /// The algorithm, for keys that have several: RSA [default: RSA-PSS-SHA-256]
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
    /// Open the secret in a ciphertext; a ciphertext for another key gives an unrelated secret
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
    /// Number of bytes
    #[arg(value_parser = plain_bytes)]
    pub bytes: u64,

    /// Print hexadecimal, in one line
    #[arg(long)]
    pub hex: bool,

    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// List only algorithms of this kind
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
    /// Returns the name as typed on the command line.
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
