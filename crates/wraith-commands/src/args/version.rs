//! Version facts: the output of `wraith --version`, and the first lines of `wraith doctor`.

use wraith_crypto::{Suite, aes_hardware, implementation};

/// Returns the facts as pairs of name and value.
pub fn facts() -> Vec<(&'static str, String)> {
    let commit = match env!("WRAITH_COMMIT") {
        "" => "unknown",
        commit => commit,
    };
    let profile = match env!("WRAITH_PROFILE") {
        "release" => String::new(),
        other => format!(", {other} build"),
    };
    vec![
        ("commit", commit.to_owned()),
        ("target", format!("{}{profile}", env!("WRAITH_TARGET"))),
        ("protocol", protocol()),
        ("keys", format!("{} (AWS-LC)", wraith_transport::KEY_AGREEMENT)),
        ("cipher", cipher()),
        ("hash", format!("BLAKE3 ({})", hash())),
    ]
}

/// Returns the versions of all parts that two programs must have in common.
pub fn protocol() -> String {
    format!(
        "wraith/{} (packets 1, tickets {}, transfer {}, rendezvous {})",
        wraith_transport::HANDSHAKE_VERSION,
        wraith_discovery::VERSION,
        wraith_transfer::limits::VERSION,
        wraith_discovery::rendezvous::VERSION,
    )
}

/// Returns the cipher that two machines like this one negotiate, and its implementation.
pub fn cipher() -> String {
    let suite = if aes_hardware() { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
    format!("{} ({})", suite.name(), implementation(suite))
}

/// Returns the instruction set that hashing uses.
pub fn hash() -> String {
    match blake3::platform::Platform::detect() {
        blake3::platform::Platform::Portable => "no vector instructions".into(),
        vectors => format!("{vectors:?}"),
    }
}

/// Returns the text of `--version`; `-V` prints its first line.
pub fn long() -> String {
    let facts = facts();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, fact)| format!("\n{name:width$}  {fact}"));
    format!("{}{}", env!("CARGO_PKG_VERSION"), lines.collect::<String>())
}
