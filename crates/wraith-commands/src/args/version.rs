//! Version facts: the output of `wraith --version`, and the first lines of `wraith doctor`.

use wraith_crypto::{Backends, KernelState, Suite, aes_hardware, implementation};

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
        ("kernels", kernels()),
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

/// Returns the kernels that a wrong result in their self-test has switched off. Conservative
/// backends run no kernel, not even in a self-test.
pub fn failed_kernels() -> Vec<String> {
    if Backends::chosen() == Some(Backends::Conservative) {
        return Vec::new();
    }
    let all = wraith_crypto::kernels().into_iter();
    let failed = all.filter(|kernel| kernel.state() == KernelState::Failed);
    failed.map(|kernel| format!("{} ({})", kernel.name(), kernel.features())).collect()
}

/// Returns the work that wraith's own vector code does in this process.
pub fn kernels() -> String {
    if wraith_crypto::kernels().is_empty() {
        return "none in this build".to_owned();
    }
    let used = match Backends::chosen() {
        Some(Backends::Conservative) => "none, by the choice of conservative backends",
        _ if !wraith_crypto::kernels().iter().any(|kernel| kernel.is_available()) => {
            "none: this processor lacks the instructions, or WRAITH_KERNELS hides them"
        }
        None => "for packets, hashes and bulk encryption",
        Some(Backends::Fast) => "for everything, by the choice of fast backends",
    };
    match failed_kernels().as_slice() {
        [] => used.to_owned(),
        failed => format!("{used}; off after a wrong result: {}", failed.join(", ")),
    }
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
