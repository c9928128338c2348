//! Strips the names out of the release program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("PROFILE") == "release"
        && variable("DEBUG") == "false"
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
