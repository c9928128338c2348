//! Writes the Python, Kotlin and Swift sources that belong to a built `libwraith_ffi`, from what the library says of itself.
//!
//! `wraith-generate generate --library target/debug/libwraith_ffi.so --language kotlin --out-dir FOLDER`. It is a package of its
//! own so that the generator's many dependencies stay out of the library; it must be of the version of `uniffi` that the library is
//! built with, which the one lock file sees to.

fn main() {
    uniffi::uniffi_bindgen_main();
}
