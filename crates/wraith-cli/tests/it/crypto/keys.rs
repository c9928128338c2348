//! Key files: readable only by their owner, never overwritten by accident, and refused if invalid.

use super::{Bench, mode, said};

#[test]
fn a_key_file_is_for_its_owner_and_is_not_overwritten() {
    let bench = Bench::new();
    for name in ["Ed25519", "X-Wing", "AES-256-GCM", "HMAC-SHA-256", "AES-128-XTS"] {
        bench.ok(&["genkey", name, "-o", "key", "--force"]);
        assert_eq!(mode(&bench.path("key")), 0o600, "{name}");
        let before = bench.read("key");
        let said = bench.fails(&["genkey", name, "-o", "key"], 2);
        assert!(said.contains("already exists") && said.contains("--force"), "{said}");
        assert_eq!(bench.read("key"), before);
        bench.ok(&["genkey", name, "-o", "key", "--force"]);
        assert_ne!(bench.read("key"), before, "{name}");
        assert_eq!(mode(&bench.path("key")), 0o600);
    }
    assert_eq!(bench.names(), ["key"]);
}

#[test]
fn secrets_have_the_length_of_their_algorithm() {
    let bench = Bench::new();
    for (name, bytes) in [("aes_128_gcm", 16), ("AES-192-CBC", 24), ("aes256xts", 64)] {
        let text = bench.ok(&["genkey", name]);
        assert_eq!(text.len(), 2 * bytes + 1, "{name}");
        assert!(text.trim_ascii_end().iter().all(u8::is_ascii_hexdigit));
    }
}

#[test]
fn signatures_are_good_until_something_is_changed() {
    let bench = Bench::with(&[("text", b"to be signed"), ("other", b"to be singed")]);
    for name in ["Ed25519", "ECDSA-P-256", "ECDSA-P-384", "ML-DSA-65"] {
        bench.ok(&["genkey", name, "-o", "key", "--force"]);
        bench.ok(&["pub", "key", "-o", "public", "--force"]);
        bench.ok(&["sign", "text", "-k", "key", "-o", "signature", "--force"]);
        bench.ok(&["verify", "text", "-k", "public", "-s", "signature"]);
        let said = bench.fails(&["verify", "other", "-k", "public", "-s", "signature"], 8);
        assert!(said.contains("bad signature"), "{said}");
        let mut changed = bench.read("signature");
        let last = changed.len() - 1;
        changed[last] ^= 1;
        bench.write("changed", &changed);
        bench.fails(&["verify", "text", "-k", "public", "-s", "changed"], 8);
        bench.write("changed", &changed[..last]);
        bench.fails(&["verify", "text", "-k", "public", "-s", "changed"], 8);
        bench.ok(&["genkey", name, "-o", "key", "--force"]);
        bench.ok(&["pub", "key", "-o", "public", "--force"]);
        bench.fails(&["verify", "text", "-k", "public", "-s", "signature"], 8);
    }
    // Longer than any signature.
    bench.write("changed", &vec![0; 1 << 20]);
    bench.fails(&["verify", "text", "-k", "public", "-s", "changed"], 8);
}

#[test]
fn a_secret_that_is_encapsulated_is_the_one_that_is_opened() {
    let bench = Bench::new();
    bench.ok(&["genkey", "X-Wing", "-o", "key"]);
    bench.ok(&["pub", "key", "-o", "public"]);
    bench.ok(&["kem", "encapsulate", "-k", "public", "-s", "one", "-o", "ciphertext"]);
    assert_eq!(mode(&bench.path("one")), 0o600);
    bench.ok(&["kem", "decapsulate", "ciphertext", "-k", "key", "-o", "other"]);
    assert_eq!(bench.read("one"), bench.read("other"));
    // Both outputs name the same file by different paths: neither appears, with or without --force.
    bench.write("both", b"before");
    for more in [&[][..], &["--force"]] {
        let words = ["kem", "encapsulate", "-k", "public", "-s", "both", "-o", "./both"];
        bench.fails(&[&words[..], more].concat(), 2);
        assert_eq!(bench.read("both"), b"before");
    }
    let words = ["kem", "encapsulate", "-k", "public", "-s", "new", "-o", "./new"];
    let said = bench.fails(&words, 2);
    assert!(said.contains("the same destination"), "{said}");
    assert!(!bench.path("new").exists());
    let cut = bench.read("ciphertext")[1..].to_vec();
    bench.write("cut", &cut);
    bench.fails(&["kem", "decapsulate", "cut", "-k", "key", "-o", "none"], 8);
    bench.write("long", &vec![0; 1 << 20]);
    bench.fails(&["kem", "decapsulate", "long", "-k", "key", "-o", "none"], 8);
    assert!(!bench.path("none").exists());
}

#[test]
fn a_file_that_is_no_key_is_reported_with_the_command_that_makes_one() {
    let bench = Bench::with(&[
        ("text", b"some text"),
        ("odd", b"0011223"),
        ("short", b"0011"),
        ("binary", &[0xff; 40]),
        ("large", &[b'0'; 100_000]),
        ("pem", b"-----BEGIN PRIVATE KEY-----\nTUFO\n-----END PRIVATE KEY-----\n"),
    ]);
    for name in ["odd", "short", "binary", "large", "text", "pem"] {
        let said = bench.fails(&["enc", "text", "-k", name, "-o", "no"], 2);
        let finding = [format!("{name} contains"), format!("{name} does not contain")];
        assert!(finding.iter().any(|text| said.contains(text)), "{said}");
        bench.fails(&["sign", "text", "-k", name, "-o", "no"], 2);
        bench.fails(&["pub", name, "-o", "no"], 2);
        bench.fails(&["verify", "text", "-k", name, "-s", "text"], 2);
    }
    bench.fails(&["enc", "text", "-k", "missing", "-o", "no"], 7);
    bench.ok(&["genkey", "Ed25519", "-o", "ed"]);
    let said = bench.fails(&["dec", "text", "-k", "ed"], 2);
    assert!(said.contains("cannot decrypt"), "{said}");
    bench.ok(&["genkey", "X-Wing", "-o", "xwing"]);
    let said = bench.fails(&["sign", "text", "-k", "xwing", "-o", "no"], 2);
    assert!(said.contains("cannot sign"), "{said}");
    bench.ok(&["pub", "ed", "-o", "ed.pub"]);
    let said = bench.fails(&["enc", "text", "--to", "ed.pub", "-o", "no"], 2);
    assert!(said.contains("a key of Ed25519, which is for signatures only"), "{said}");
    bench.ok(&["pub", "xwing", "-o", "xwing.pub"]);
    let said = bench.fails(&["verify", "text", "-k", "xwing.pub", "-s", "text"], 2);
    assert!(said.contains("a key of X-Wing, which cannot sign"), "{said}");
    bench.write("pem", b"-----BEGIN \x1b[31mKEY-----\nTUFO\n-----END \x1b[31mKEY-----\n");
    let said = bench.fails(&["pub", "pem", "-o", "no"], 2);
    assert!(!said.contains('\x1b'), "{said}");
    bench.write("key", &[b'0'; 64]);
    let said = bench.fails(&["mac", "gmac-aes-256", "-k", "key", "text"], 2);
    assert!(said.contains("--nonce HEX"), "{said}");
    bench.write("key", b"00112233445566778899aabbccddeeff");
    let said = bench.fails(&["mac", "cmac-aes-256", "-k", "key", "text"], 2);
    assert!(said.contains("32 bytes, not 16"), "{said}");
    for bytes in [8, 15] {
        bench.write("weak", "7a".repeat(bytes).as_bytes());
        let said = bench.fails(&["enc", "text", "-k", "weak", "-o", "no"], 2);
        assert!(said.contains("encryption needs 16 or more"), "{said}");
    }
    assert!(!bench.path("no").exists());
    bench.write("enough", "7a".repeat(16).as_bytes());
    bench.ok(&["enc", "text", "-k", "enough", "-o", "sealed"]);
}

#[test]
fn standard_input_is_one_thing_only() {
    let bench = Bench::new();
    bench.ok(&["genkey", "AES-256-GCM", "-o", "key"]);
    bench.ok(&["genkey", "Ed25519", "-o", "ed"]);
    bench.ok(&["sign", "key", "-k", "ed", "-o", "signature"]);
    bench.ok(&["pub", "ed", "-o", "ed.pub"]);
    for (words, input) in [
        (&["enc", "-k", "-", "-o", "no"][..], "key"),
        (&["enc", "-", "--passphrase-file", "-", "-o", "no"], "key"),
        (&["dec", "-k", "-", "-o", "no"], "key"),
        (&["mac", "HMAC-SHA-256", "-k", "-"], "key"),
        (&["sign", "-k", "-", "-o", "no"], "ed"),
        (&["verify", "-k", "ed.pub", "-s", "-"], "signature"),
        (&["hash", "SHA-256", "-", "-"], "key"),
        (&["hash", "SHA-256", "ed", "-", "ed", "-"], "key"),
        (&["mac", "HMAC-SHA-256", "-k", "key", "-", "ed", "-"], "key"),
        (&["mac", "HMAC-SHA-256", "-k", "-", "ed", "-"], "key"),
    ] {
        let output = bench.run_with(words, &bench.read(input));
        assert!(output.stdout.is_empty(), "{words:?} did some of it");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains("standard input"), "{words:?}: {}", said(&output));
    }
    assert!(!bench.path("no").exists());
    // One input may come from standard input, even the key.
    let output = bench.run_with(&["enc", "ed", "-k", "-", "-o", "sealed"], &bench.read("key"));
    assert!(output.status.success(), "{}", said(&output));
    bench.ok(&["dec", "sealed", "-k", "key", "-o", "again"]);
    assert_eq!(bench.read("again"), bench.read("ed"));
}

#[test]
fn a_key_is_not_written_to_a_pipe_of_another_user() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    if std::os::unix::fs::chown(&pipe, Some(12345), None).is_err() {
        crate::support::skipped("only root can make a pipe somebody else's");
        return;
    }
    // Kept open, so that no writer waits for a reader.
    let reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    for more in [&[][..], &["--force"]] {
        let said = bench.fails(&[&["genkey", "Ed25519", "-o", "pipe"], more].concat(), 2);
        assert!(said.contains("belongs to another user"), "{said}");
    }
    drop(reader);
}

#[test]
fn a_replacement_file_keeps_the_readers_of_the_old_one() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with(&[("text", b"text"), ("private", b"old")]);
    let only_mine = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(bench.path("private"), only_mine).unwrap();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    bench.ok(&["enc", "text", "-k", "key", "-o", "private", "--force"]);
    assert_eq!(mode(&bench.path("private")), 0o600);
}

#[test]
fn a_secret_and_its_ciphertext_do_not_go_to_one_place() {
    let bench = Bench::new();
    bench.ok(&["genkey", "X-Wing", "-o", "key"]);
    bench.ok(&["pub", "key", "-o", "public"]);
    bench.fails(&["kem", "encapsulate", "-k", "public", "-s", "-"], 2);
    bench.fails(&["kem", "encapsulate", "-k", "public", "-s", "s", "-o", "s"], 2);
    assert!(!bench.path("s").exists());
}
