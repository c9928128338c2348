//! Runs one target of `wraith-fuzz` under libFuzzer. `WRAITH_FUZZ_TARGET` selects it; `cargo xtask
//! fuzz` starts it.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use wraith_fuzz::TARGETS;

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("WRAITH_FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("WRAITH_FUZZ_TARGET names no target: {name:?}")).run
}

fuzz_target!(|input: &[u8]| RUN.get_or_init(chosen)(input));
