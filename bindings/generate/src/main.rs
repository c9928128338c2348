//! Writes the Python, Kotlin and Swift sources for a built `libwraith_ffi`, from the metadata in
//! the library.
//!
//! `wraith-generate generate --library target/debug/libwraith_ffi.so --language kotlin --out-dir
//! FOLDER`.
//!
//! It is a separate package so that the generator's many dependencies stay out of the library. It
//! must have the version of `uniffi` that the library is built with; the shared lock file ensures
//! that.

fn main() {
    uniffi::uniffi_bindgen_main();
}
