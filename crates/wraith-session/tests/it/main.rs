//! Tests of sessions through the public API.

#[path = "../../../wraith-core/tests/it/counting.rs"]
mod counting;
#[cfg(all(unix, feature = "file-vault"))]
mod file_vault;
mod handshakes;
mod memory;
mod messages;
mod ratchet;
mod ratchet_batch;
mod ratchet_group;
mod ratchet_late;
mod ratchet_model;
mod ratchet_random;
mod ratchet_schedules;
mod ratchet_start;
mod ratchet_state;
mod ratchet_support;
mod ratchet_vectors;
mod saving;
mod stored;
mod stored_ratchet;
mod stored_start;
mod stored_support;
mod support;
mod vectors;
