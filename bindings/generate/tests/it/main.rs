//! Tests of the generator as a program. A test here also makes cargo build the generator together
//! with all other tests.

use std::process::Command;

#[test]
fn a_library_that_is_not_there_is_an_error_and_no_empty_sources() {
    let folder = tempfile::tempdir().unwrap();
    let mut generate = Command::new(env!("CARGO_BIN_EXE_wraith-generate"));
    generate.args(["generate", "--language", "python", "--library", "/no/such/library.so"]);
    let output = generate.arg("--out-dir").arg(folder.path()).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}
