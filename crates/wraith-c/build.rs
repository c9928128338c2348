//! Gives the shared library its SONAME, `libwraith_c.so.ABI`: a program that was linked to one ABI
//! does not start with a library of another.

fn main() {
    println!("cargo:rerun-if-changed=src/library.rs");
    let source = std::fs::read_to_string("src/library.rs").expect("the crate is whole");
    let (_, behind) = source.split_once("WRAITH_ABI: u32 = ").expect("the ABI has a number");
    let (abi, _) = behind.split_once(';').expect("the line has an end");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libwraith_c.so.{abi}");
    }
}
