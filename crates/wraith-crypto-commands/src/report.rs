//! The interface between a command and the program that prints its results.

use serde::Serialize;

/// Prints the results of a command for people and for programs.
pub trait Reporter {
    /// Writes an event for programs.
    fn event(&self, event: &Event<'_>);

    /// Prints a requested line on standard output, without its line end. With events, nothing is
    /// printed.
    fn print(&self, line: &[u8]);

    /// Shows a line to people.
    fn status(&self, line: &str);

    /// Reports a notice to people and to programs.
    fn note(&self, message: &str);

    /// Reports a file to hash that cannot be read, while the command continues. `path` is as named
    /// on the command line; `message` is the reason.
    fn unreadable(&self, path: &str, message: &str);

    /// Redirects all later output from standard output to standard error, because the command
    /// writes its result to standard output.
    fn keep_off_stdout(&self);
}

/// The events of the commands, as `--json` prints them. Scripts rely on their names and fields.
///
/// The comments are the documentation: `docs/json.md` and the schema are made from them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A hash or an authentication code that was asked for (`wraith crypto hash`, `wraith crypto mac`).
    Digest {
        /// The file as named on the command line, `-` for standard input.
        path: &'a str,
        /// The algorithm.
        algorithm: &'a str,
        /// The hash or authentication code, in hexadecimal.
        value: &'a str,
    },
    /// An algorithm of the list (`wraith crypto list`).
    Algorithm {
        /// `hash`, `cipher`, `aead`, `mac`, `sign`, `agree`, `kem` or `encrypt`.
        kind: &'a str,
        /// Its name.
        name: &'a str,
        /// The standard that defines it.
        standard: &'a str,
        /// Implementation on this processor: a library, or `own` with the processor features that
        /// it uses.
        backend: &'a str,
    },
    /// `wraith crypto` has written a complete result.
    Written {
        /// Kind of result: `encrypted`, `decrypted`, `secret`, `private-key`, `public-key`,
        /// `signature`, `ciphertext` or `random`.
        what: &'a str,
        /// The algorithm; null for random bytes.
        algorithm: Option<&'a str>,
        /// The file, escaped; null for standard output. Events go to standard error then.
        path: Option<&'a str>,
        /// Size of the result in bytes.
        bytes: u64,
    },
    /// A signature is valid (`wraith crypto verify`).
    SignatureValid {
        /// The signed file as named on the command line, `-` for standard input.
        path: &'a str,
        /// The algorithm.
        algorithm: &'a str,
    },
    /// The speed of an operation on this machine (`wraith speed`).
    Speed {
        /// The algorithm and the operation.
        name: &'a str,
        /// Bytes of the text that each operation processes; null for operations without a text.
        bytes: Option<u64>,
        /// Operations in a second: the median of several time slices; null with `--list`.
        operations_per_second: Option<f64>,
        /// Bytes of text in a second; null for operations without a text.
        bytes_per_second: Option<f64>,
        /// Number of operations that were measured.
        operations: u64,
        /// Implementation, as in `algorithm`.
        backend: &'a str,
        /// The choice of backends with which it was measured: `fast`, `conservative`, or `both` if
        /// the implementation is the same.
        backends: &'a str,
        /// Steps that the measured time includes.
        scope: &'a str,
    },
}
