//! `dec` reads the output of `enc`. Every change of it is detected, and then no plaintext is
//! released.

use std::io::Read;

use super::{Bench, bytes, said};

/// Header of a file with a key: magic, AEAD, source, salt, commitment.
const HEAD: usize = 8 + 1 + 1 + 32 + 32;
const CHUNK: usize = 65_536;
const TAG: usize = 16;

fn with_key() -> Bench {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    bench
}

#[test]
fn texts_of_every_kind_of_length_come_back_through_files_and_pipes() {
    let bench = with_key();
    for len in [0, 1, 15, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 200_000] {
        let text = bytes(len);
        bench.write("text", &text);
        bench.ok(&["enc", "text", "-k", "key", "-o", "sealed", "--force"]);
        let chunks = len.div_ceil(CHUNK).max(1);
        assert_eq!(bench.read("sealed").len(), HEAD + len + chunks * TAG, "{len}");
        bench.ok(&["dec", "sealed", "-k", "key", "-o", "again", "--force"]);
        assert!(bench.read("again") == text, "{len}");
        let sealed = bench.run_with(&["enc", "-k", "key"], &text);
        let opened = bench.run_with(&["dec", "-k", "key", "-"], &sealed.stdout);
        assert!(opened.status.success() && opened.stdout == text, "{len}");
    }
}

#[test]
fn the_same_text_is_never_encrypted_to_the_same() {
    let bench = with_key();
    bench.write("text", b"the same");
    assert_ne!(bench.ok(&["enc", "text", "-k", "key"]), bench.ok(&["enc", "text", "-k", "key"]));
}

#[test]
fn any_byte_that_is_changed_is_noticed_and_no_file_is_left() {
    let bench = with_key();
    let text = bytes(300);
    bench.write("text", &text);
    let sealed = bench.ok(&["enc", "text", "-k", "key"]);
    let before = bench.names();
    let places = (0..HEAD).step_by(5).chain((HEAD..sealed.len()).step_by(41));
    for at in places.chain([8, 9, sealed.len() - 1]) {
        let mut changed = sealed.clone();
        changed[at] ^= 1 << (at % 8);
        let output = bench.run_with(&["dec", "-k", "key", "-o", "again"], &changed);
        let code = output.status.code();
        // The changed byte may name another valid source, which needs another kind of secret.
        assert!(code == Some(8) || (at == 9 && code == Some(2)), "{at}: {}", said(&output));
        assert_eq!(bench.names(), before, "{at}");
    }
}

#[test]
fn a_cut_at_any_place_is_an_error_and_only_verified_text_is_let_out() {
    let bench = with_key();
    let text = bytes(2 * CHUNK + 100);
    bench.write("text", &text);
    let sealed = bench.ok(&["enc", "text", "-k", "key"]);
    let second = HEAD + CHUNK + TAG;
    let third = second + CHUNK + TAG;
    for (len, verified) in [
        (0, 0),
        (7, 0),
        (9, 0),
        (HEAD - 1, 0),
        (HEAD, 0),
        (HEAD + 15, 0),
        (HEAD + 1000, 0),
        (second, 0),
        (second + 16, CHUNK),
        (third - 1, CHUNK),
        (third, CHUNK),
        (sealed.len() - 1, 2 * CHUNK),
    ] {
        let output = bench.run_with(&["dec", "-k", "key"], &sealed[..len]);
        assert_eq!(output.status.code(), Some(8), "{len}: {}", said(&output));
        assert!(output.stdout == text[..verified], "{len}: {} bytes", output.stdout.len());
    }
    let whole = bench.run_with(&["dec", "-k", "key"], &sealed[..second]);
    assert!(said(&whole).contains("cut off"), "{}", said(&whole));
}

#[test]
fn chunks_that_are_moved_repeated_left_out_or_added_are_noticed() {
    let bench = with_key();
    bench.write("text", &bytes(3 * CHUNK));
    let sealed = bench.ok(&["enc", "text", "-k", "key"]);
    let (head, body) = sealed.split_at(HEAD);
    let chunks: Vec<&[u8]> = body.chunks(CHUNK + TAG).collect();
    for order in [&[1, 0, 2][..], &[0, 0, 1, 2], &[0, 2], &[1, 2], &[0, 1, 2, 2], &[2]] {
        let order = order.iter().map(|&n| chunks[n]).collect::<Vec<_>>().concat();
        let output = bench.run_with(&["dec", "-k", "key", "-o", "no"], &[head, &order].concat());
        assert_eq!(output.status.code(), Some(8));
        assert!(!bench.path("no").exists());
    }
    let more = [&sealed[..], &[0]].concat();
    assert_eq!(bench.run_with(&["dec", "-k", "key"], &more).status.code(), Some(8));
}

#[test]
fn a_wrong_key_is_reported_before_any_output() {
    let bench = with_key();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "other"]);
    bench.write("text", &bytes(1000));
    bench.ok(&["enc", "text", "-k", "key", "-o", "sealed"]);
    let said = bench.fails(&["dec", "sealed", "-k", "other"], 8);
    assert!(
        said.contains("wrong key") && said.contains("the key or passphrase that encrypted it"),
        "{said}"
    );
}

#[test]
fn a_passphrase_opens_only_its_own_files() {
    let bench = Bench::with(&[
        ("right", b"correct horse\nsecond line\n"),
        ("same", b"correct horse\r\n"),
        ("wrong", b"correct horse battery\n"),
        ("empty", b"\n"),
        ("text", b"some text"),
    ]);
    bench.ok(&["enc", "text", "--passphrase-file", "right", "-o", "sealed"]);
    assert_eq!(bench.ok(&["dec", "sealed", "--passphrase-file", "same"]), b"some text");
    bench.fails(&["dec", "sealed", "--passphrase-file", "wrong"], 8);
    bench.fails(&["enc", "text", "--passphrase-file", "empty"], 2);
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    let said = bench.fails(&["dec", "sealed", "-k", "key"], 2);
    assert!(said.contains("with a passphrase"), "{said}");
    // A header that requests too much memory is refused at once.
    let mut costly = bench.read("sealed");
    costly[10..14].copy_from_slice(&u32::MAX.to_le_bytes());
    bench.write("costly", &costly);
    let said = bench.fails(&["dec", "costly", "--passphrase-file", "right"], 8);
    assert!(said.contains("more memory or time"), "{said}");
}

#[test]
fn a_file_for_a_public_key_opens_only_with_its_private_key() {
    let bench = Bench::new();
    for name in ["X-Wing", "ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"] {
        for side in ["own", "other"] {
            bench.ok(&["genkey", name, "-o", side, "--force"]);
        }
        bench.ok(&["pub", "own", "-o", "public", "--force"]);
        bench.write("text", &bytes(70_000));
        bench.ok(&["enc", "text", "--to", "public", "-o", "sealed", "--force"]);
        assert!(bench.ok(&["dec", "sealed", "-k", "own"]) == bytes(70_000), "{name}");
        bench.fails(&["dec", "sealed", "-k", "other"], 8);
        let said = bench.fails(&["enc", "text", "--to", "own"], 2);
        assert!(said.contains("public half"), "{said}");
    }
}

#[test]
fn every_aead_encrypts_and_decrypts() {
    let bench = with_key();
    bench.write("text", &bytes(70_000));
    let list = String::from_utf8(bench.ok(&["list", "aead"])).unwrap();
    let names: Vec<&str> =
        list.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    let mut works = 0;
    for name in names {
        let words = ["enc", "text", "-a", name, "-k", "key", "-o", "sealed", "--force"];
        let output = bench.run(&words);
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(bench.ok(&["dec", "sealed", "-k", "key"]) == bytes(70_000), "{name}");
        works += 1;
    }
    assert!(works >= 8, "{list}");
}

#[test]
fn foreign_file_formats_are_reported_as_such() {
    let bench = with_key();
    bench.write("text", b"Salted__ and what openssl would have written behind it");
    let said = bench.fails(&["dec", "text", "-k", "key", "-o", "again"], 8);
    assert!(said.contains("not encrypted by wraith") && said.contains("--raw"), "{said}");
    bench.write("nothing", b"");
    let said = bench.fails(&["dec", "nothing", "-k", "key"], 8);
    assert!(said.contains("nothing: it is empty"), "{said}");
    let said = bench.fails(&["dec", "-k", "key"], 8);
    assert!(said.contains("standard input: it is empty"), "{said}");
}

#[test]
fn output_that_is_not_decrypted_is_reported() {
    let bench = with_key();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "other"]);
    bench.write("text", &bytes(CHUNK + 1000));
    let mut sealed = bench.ok(&["enc", "text", "-k", "key"]);
    bench.write("sealed", &sealed);
    bench.write("short", &sealed[..HEAD - 1]);
    sealed.pop();
    bench.write("cut", &sealed);
    bench.write("text", b"no head at all");
    for (file, key, expected) in [
        ("sealed", "other", "sealed: wrong key or passphrase"),
        ("short", "key", "short: it ends within its header"),
        ("cut", "key", "cut: it is damaged or cut off after 65536 bytes of plaintext"),
        ("text", "key", "text: not encrypted by wraith"),
    ] {
        let said = bench.fails(&["dec", file, "-k", key, "-o", "no"], 8);
        assert!(said.contains(expected), "{said}");
        let events = bench.events(&["dec", file, "-k", key, "-o", "no"], 8);
        assert!(events[0]["message"].as_str().unwrap().starts_with(expected), "{events:?}");
    }
}

#[test]
fn an_algorithm_that_the_file_knows_itself_is_to_be_left_out() {
    let bench = with_key();
    bench.write("text", b"text");
    bench.ok(&["enc", "text", "-k", "key", "-o", "sealed"]);
    let said = bench.fails(&["dec", "sealed", "-k", "key", "-a", "AES-256-GCM"], 2);
    assert!(said.contains("leave -a out"), "{said}");
}

#[test]
fn damage_after_a_closed_pipe_is_still_reported() {
    let bench = with_key();
    bench.write("text", &bytes(20 * CHUNK));
    let mut sealed = bench.ok(&["enc", "text", "-k", "key"]);
    let last = sealed.len() - 1;
    sealed[last] ^= 1;
    bench.write("damaged", &sealed);
    let mut child = bench.command(&["dec", "damaged", "-k", "key"]).spawn().unwrap();
    let mut first = [0; 10];
    // The rest of the pipe is closed unread.
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(8));
}

#[test]
fn raw_encryption_takes_a_key_and_no_passphrase_or_public_key() {
    let bench = Bench::with(&[("text", b"text"), ("words", b"correct horse")]);
    bench.ok(&["genkey", "X-Wing", "-o", "own"]);
    bench.ok(&["pub", "own", "-o", "public"]);
    let raw = ["--raw", "-a", "AES-256-CBC", "--iv", "00112233445566778899aabbccddeeff"];
    for action in ["enc", "dec"] {
        for secret in [&["-p"][..], &["--passphrase-file", "words"], &["--to", "public"], &[]] {
            if action == "dec" && secret.first() == Some(&"--to") {
                continue;
            }
            bench.fails(&[&[action, "text"], &raw[..], secret].concat(), 2);
        }
    }
}
