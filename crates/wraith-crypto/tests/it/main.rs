//! AES-256-GCM of every implementation: published vectors, and each beside the other.

mod cavp;
mod differential;
mod implementations;
mod wycheproof;
