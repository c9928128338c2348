//! Every reachable decoder as a function of arbitrary bytes that panics if the decoder is wrong.
//! The bytes may come from strangers or peers, from a user that can write to the disk, or from a
//! key file.
//!
//! The targets whose names begin with `kernel_` compare the kernels of `wraith-kernels` with their
//! portable twins and with another library. There the bytes choose the operation, lengths, values
//! and the places of the buffers.
//!
//! Invariant: each target checks more than the absence of panics: it states what must hold for
//! every input that it accepts. Above all, a decoded value encodes to bytes that decode to the same
//! value.
//!
//! `cargo xtask fuzz` runs the targets under libFuzzer, which searches for inputs that reach new
//! code. `tests/corpus.rs` runs the committed inputs and some thousand variations of them in
//! seconds.
#![deny(unsafe_code)]

mod guarded;
mod input;
mod levels;
mod mutate;
pub mod session_world;
mod targets;

pub use mutate::Mutator;

/// A decoder or state machine that takes bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target, and of the folder of its inputs below `corpus`.
    pub name: &'static str,
    /// Runs one input. Panics if an invariant does not hold.
    pub run: fn(&[u8]),
    /// Variations of the committed inputs that a test runs: fewer for slow targets.
    pub variations: u32,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "stranger", run: targets::stranger::run, variations: 600 },
    Target { name: "peer", run: targets::peer::run, variations: 1500 },
    Target { name: "handshake", run: targets::handshake::run, variations: 100 },
    Target { name: "hello", run: targets::hello::run, variations: 20000 },
    Target { name: "packet", run: targets::packet::run, variations: 3000 },
    Target { name: "frames", run: targets::frames::run, variations: 20000 },
    Target { name: "message", run: targets::message::run, variations: 20000 },
    Target { name: "record", run: targets::record::run, variations: 20000 },
    Target { name: "manifest", run: targets::manifest::run, variations: 10000 },
    Target { name: "journal", run: targets::journal::run, variations: 150 },
    Target { name: "ticket", run: targets::ticket::run, variations: 20000 },
    Target { name: "code", run: targets::code::run, variations: 3000 },
    Target { name: "rendezvous", run: targets::rendezvous::run, variations: 20000 },
    Target { name: "punch", run: targets::punch::run, variations: 600 },
    Target { name: "relay", run: targets::relay::run, variations: 20000 },
    Target { name: "dht", run: targets::dht::run, variations: 20000 },
    Target { name: "meeting", run: targets::meeting::run, variations: 1000 },
    Target { name: "session_handshake", run: targets::session_handshake::run, variations: 200 },
    Target { name: "session_open", run: targets::session_open::run, variations: 1500 },
    Target { name: "session_state", run: targets::session_state::run, variations: 3000 },
    Target { name: "vault_record", run: targets::vault_record::run, variations: 3000 },
    Target { name: "fragments", run: targets::fragments::run, variations: 20000 },
    Target { name: "sealed_box", run: targets::sealed_box::run, variations: 1500 },
    Target { name: "protocol_name", run: targets::protocol_name::run, variations: 20000 },
    Target { name: "ratchet_message", run: targets::ratchet_message::run, variations: 600 },
    Target { name: "ratchet_peer", run: targets::ratchet_peer::run, variations: 300 },
    Target { name: "ratchet_start", run: targets::ratchet_start::run, variations: 300 },
    Target { name: "prekey_bundle", run: targets::prekey_bundle::run, variations: 400 },
    Target { name: "ratchet_state", run: targets::ratchet_state::run, variations: 600 },
    Target { name: "prekeys_state", run: targets::prekeys_state::run, variations: 200 },
    Target { name: "der", run: targets::der::run, variations: 20000 },
    Target { name: "pem", run: targets::pem::run, variations: 20000 },
    Target { name: "pkcs8", run: targets::pkcs8::run, variations: 1000 },
    Target { name: "spki", run: targets::spki::run, variations: 1000 },
    Target { name: "kernel_aes", run: targets::kernel_aes::run, variations: 4000 },
    Target { name: "kernel_aes_gcm", run: targets::kernel_aes_gcm::run, variations: 4000 },
    Target { name: "kernel_ghash", run: targets::kernel_ghash::run, variations: 2000 },
    Target { name: "kernel_chacha", run: targets::kernel_chacha::run, variations: 4000 },
    Target { name: "kernel_poly1305", run: targets::kernel_poly1305::run, variations: 2000 },
    Target { name: "kernel_sm4", run: targets::kernel_sm4::run, variations: 1500 },
    Target { name: "kernel_sm3", run: targets::kernel_sm3::run, variations: 1500 },
    Target { name: "kernel_sha512", run: targets::kernel_sha512::run, variations: 4000 },
    Target { name: "kernel_keccak", run: targets::kernel_keccak::run, variations: 4000 },
    Target { name: "kernel_sm2", run: targets::kernel_sm2::run, variations: 200 },
    Target { name: "kernel_p256", run: targets::kernel_p256::run, variations: 2000 },
    Target { name: "kernel_inverse", run: targets::kernel_inverse::run, variations: 2000 },
    Target { name: "kernel_pieces", run: targets::kernel_pieces::run, variations: 2000 },
];
