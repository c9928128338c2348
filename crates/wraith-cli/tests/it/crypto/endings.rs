//! Failures of commands: unknown names, full disks, closed pipes, and the events for programs.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Bench, bytes, mode, said};
use crate::support::skipped;

impl Bench {
    /// Starts a command and waits until it has created its output file. It blocks on the full input
    /// pipe.
    fn begun(&self, command: &mut Command) -> Child {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.as_mut().unwrap();
        std::io::Write::write_all(pipe, &bytes(1 << 20)).unwrap();
        let names = self.names();
        assert!(names.iter().any(|name| name.starts_with(".wraith-")), "{names:?}");
        child
    }
}

#[test]
fn an_unknown_algorithm_is_answered_with_a_suggestion() {
    let bench = Bench::new();
    let huge = "x".repeat(100_000);
    bench.write("key", b"00112233445566778899aabbccddeeff");
    for (words, expected) in [
        (&["hash", "sha265"][..], "did you mean SHA-256"),
        (&["genkey", "aes-256-gmc"], "did you mean AES-256-GCM"),
        (&["genkey", "prime256v1"], "did you mean ECDSA-P-256"),
        (&["genkey", "SECP384R1"], "did you mean ECDSA-P-384"),
        (&["genkey", "rsa2048"], "did you mean RSA-PSS-SHA-256"),
        (&["rand", "1k"], "in digits: 1024"),
        (&["genkey", "sha-256"], "no key files for SHA-256"),
        (&["mac", "hmac-sha2-256", "-k", "key"], "did you mean HMAC-SHA"),
        (&["enc", "-a", "aes-256-cbc", "-k", "key"], "--raw"),
        (&["enc", "-a", "chacha", "-k", "key"], "ChaCha20-Poly1305"),
        (&["enc", "-k", "key", "--raw", "-a", "aes-256-gcm", "--iv", "00"], "leave --raw out"),
        (&["hash", &huge], "wraith crypto list hash"),
        (&["hash", "sha\x1b[31m"], "sha\\x1b[31m"),
        (&["enc"], "the key is missing"),
        (&["dec"], "the key is missing"),
        (&["enc", "--raw", "-k", "key"], "--algorithm"),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        let said = bench.fails(words, 2);
        assert!(said.contains(expected), "{words:?}: {said}");
        assert!(said.len() < 1000 && !said.contains('\x1b'), "{said}");
    }
}

#[test]
fn hashes_are_those_of_the_standards_for_files_and_pipes() {
    let bench = Bench::with(&[("abc", b"abc")]);
    let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let sm3 = "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0";
    assert_eq!(bench.ok(&["hash", "sha256", "abc"]), format!("{sha}  abc\n").as_bytes());
    assert_eq!(bench.run_with(&["hash", "SM3"], b"abc").stdout, format!("{sm3}  -\n").as_bytes());
    let output = bench.run(&["hash", "sha-256", "missing", "abc"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stdout.starts_with(sha.as_bytes()), "the other one is hashed");
    let events = bench.events(&["hash", "sha-256", "missing", "abc"], 7);
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["hash_failed", "digest", "error"]);
    assert_eq!(events[1]["value"], sha);
}

#[test]
fn sha256sum_checks_hashes_of_files_with_any_name() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;

    let bench = Bench::new();
    let names: [&[u8]; 8] = [
        b"plain",
        b"line\nbreak",
        b"back\\slash",
        b"\\",
        b"new\\n",
        b"\x1b[2J bell\x07",
        b" two  spaces *",
        "\u{202e}fdp.exe".as_bytes(),
    ];
    // No name has invalid UTF-8, which some file systems refuse, or a `\r`, which older checkers
    // misread.
    let names = names.map(|name| OsString::from(OsStr::from_bytes(name)));
    for name in &names {
        std::fs::write(bench.world.source().join(name), name.as_bytes()).unwrap();
    }
    for (algorithm, checker) in [("sha-256", "sha256sum"), ("sha-512", "sha512sum")] {
        let output = bench.command(&["hash", algorithm]).args(&names).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(output.stdout.split(|byte| *byte == b'\n').count(), names.len() + 1);
        bench.write("sums", &output.stdout);
        let mut check = Command::new(checker);
        let check = check.args(["-c", "--strict", "sums"]).current_dir(bench.world.source());
        match check.output() {
            Ok(checked) => assert!(checked.status.success(), "{checked:?}"),
            Err(_) => skipped(&format!("{checker} is not installed")),
        }
    }
}

#[test]
fn an_authentication_code_is_that_of_rfc_4231() {
    let bench = Bench::new();
    bench.write("key", "0b".repeat(20).as_bytes());
    bench.write("text", b"Hi There");
    let tag = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
    let line = bench.ok(&["mac", "hmac-sha-256", "-k", "key", "text"]);
    assert_eq!(line, format!("{tag}  text\n").as_bytes());
    assert_eq!(bench.events(&["mac", "hmac-sha-256", "-k", "key", "text"], 0)[0]["value"], tag);
    bench.fails(&["mac", "gmac-aes-128", "-k", "key", "text", "--nonce", "xyz"], 2);
}

#[test]
fn every_result_has_its_event() {
    let bench = Bench::new();
    bench.write("text", &bytes(1000));
    let written = |words: &[&str], what: &str| {
        let events = bench.events(words, 0);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0]["event"], "written");
        assert_eq!(events[0]["what"], what, "{words:?}");
        let path = words[words.iter().position(|word| *word == "-o").unwrap() + 1];
        assert_eq!(events[0]["path"], path);
        assert_eq!(events[0]["bytes"], bench.read(path).len());
    };
    written(&["genkey", "Ed25519", "-o", "ed"], "private-key");
    written(&["pub", "ed", "-o", "ed.pub"], "public-key");
    written(&["sign", "text", "-k", "ed", "-o", "signature"], "signature");
    written(&["genkey", "AES-256-GCM", "-o", "key"], "secret");
    written(&["enc", "text", "-k", "key", "-o", "sealed"], "encrypted");
    written(&["dec", "sealed", "-k", "key", "-o", "again"], "decrypted");
    written(&["rand", "100", "-o", "random"], "random");
    let good = bench.events(&["verify", "text", "-k", "ed.pub", "-s", "signature"], 0);
    assert_eq!(good[0]["event"], "signature_valid");
    assert_eq!(good[0]["algorithm"], "Ed25519");
    let bad = bench.events(&["verify", "sealed", "-k", "ed.pub", "-s", "signature"], 8);
    assert_eq!(bad[0]["code"], "verification_failed");
    let list = bench.events(&["list", "kem"], 0);
    assert!(list.iter().any(|each| each["name"] == "ML-KEM-768" && each["kind"] == "kem"));
    // Standard output carries only the data.
    let output = bench.run(&["enc", "text", "-k", "key", "--json"]);
    assert!(output.stdout.starts_with(b"WRAITHC1"));
    assert!(said(&output).contains("\"written\""), "{}", said(&output));
}

#[test]
fn a_full_disk_is_reported_and_no_file_counts_as_done() {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    bench.write("text", &bytes(300_000));
    bench.ok(&["enc", "text", "-k", "key", "-o", "sealed"]);
    for words in [
        &["enc", "text", "-k", "key"][..],
        &["dec", "sealed", "-k", "key"],
        &["rand", "100000"],
        &["genkey", "Ed25519"],
        &["hash", "sha-256", "text"],
        &["list"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}: {}", said(&output));
        assert!(said(&output).contains("No space left"), "{words:?}: {}", said(&output));
    }
    let said = bench.fails(&["enc", "text", "-k", "key", "-o", "/dev/full"], 7);
    assert!(said.contains("cannot write /dev/full"), "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_without_an_error() {
    let bench = Bench::new();
    bench.write("text", &bytes(1 << 20));
    bench.ok(&["genkey", "AES-256-CBC", "-o", "key"]);
    let raw =
        ["--raw", "-a", "AES-256-CBC", "--iv", "00112233445566778899aabbccddeeff", "-k", "key"];
    bench.ok(&[&["enc", "text", "-o", "raw"], &raw[..]].concat());
    let (encrypts, decrypts) =
        ([&["enc", "text"], &raw[..]].concat(), [&["dec", "raw"], &raw[..]].concat());
    for words in [&["rand", "18446744073709551615"][..], &["list"], &encrypts, &decrypts] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = bench.command(words).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn a_command_that_is_stopped_leaves_nothing() {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    for (signal, code) in [(Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let mut child = bench.begun(&mut bench.command(&["enc", "-k", "key", "-o", "sealed"]));
        let pipe = child.stdin.take();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal:?}: {}", said(&output));
        assert_eq!(bench.names(), ["key"], "{signal:?}");
        drop(pipe);
    }
}

#[test]
fn a_closed_terminal_does_not_end_a_nohup_process() {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    let wraith = bench.command(&["enc", "-k", "key", "-o", "sealed"]);
    let mut command = Command::new("nohup");
    command.arg(wraith.get_program()).args(wraith.get_args()).current_dir(bench.world.source());
    command.envs(wraith.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = bench.begun(&mut command);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(bench.names(), ["key", "sealed"]);
}

#[test]
fn a_file_size_limit_is_reported_and_leaves_no_file() {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    bench.write("text", &bytes(1 << 20));
    let mut command = bench.command(&["enc", "text", "-k", "key", "-o", "sealed"]);
    let limit = libc::rlimit { rlim_cur: 1 << 17, rlim_max: 1 << 17 };
    // SAFETY: one system call is made between fork and exec. It neither allocates nor takes a lock.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, move || {
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{:?} {}", output.status, said(&output));
    assert!(said(&output).contains("cannot write sealed: File too large"), "{}", said(&output));
    assert_eq!(bench.names(), ["key", "text"]);
}

#[test]
fn temporary_output_is_private_until_it_is_renamed() {
    let bench = Bench::new();
    bench.ok(&["genkey", "aes-256-gcm", "-o", "key"]);
    // A file with the default mode.
    bench.write("text", b"text");
    let mut child = bench.begun(&mut bench.command(&["enc", "-k", "key", "-o", "sealed"]));
    let names = bench.names();
    let begun = names.iter().find(|name| name.starts_with(".wraith-")).unwrap();
    assert_eq!(mode(&bench.path(begun)), 0o600);
    drop(child.stdin.take());
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(mode(&bench.path("sealed")), mode(&bench.path("text")));
}

#[test]
fn random_bytes_have_the_requested_length_and_differ() {
    let bench = Bench::new();
    assert_eq!(bench.ok(&["rand", "0"]).len(), 0);
    let (one, other) = (bench.ok(&["rand", "100000"]), bench.ok(&["rand", "100000"]));
    assert!(one.len() == 100_000 && one != other);
    let hex = bench.ok(&["rand", "20", "--hex"]);
    assert!(hex.len() == 41 && hex[..40].iter().all(u8::is_ascii_hexdigit));
    bench.fails(&["rand", "-1"], 2);
}

#[test]
fn a_target_that_is_a_folder_or_in_none_is_refused() {
    let bench = Bench::new();
    bench.fails(&["genkey", "Ed25519", "-o", "."], 2);
    bench.fails(&["genkey", "Ed25519", "-o", "missing/key"], 7);
    std::os::unix::fs::symlink("nowhere", bench.path("link")).unwrap();
    bench.fails(&["genkey", "Ed25519", "-o", "link"], 2);
    assert_eq!(bench.names(), ["link"]);
}

#[test]
fn advice_in_messages_can_be_followed() {
    let bench = Bench::with(&[("key", b"00112233445566778899aabbccddeeff")]);
    bench.write("text", &bytes(33));
    let iv = ["--iv", "00112233445566778899aabbccddeeff", "-k", "key", "--raw"];
    let cbc = [&["-a", "AES-128-CBC"], &iv[..]].concat();
    let said = bench.fails(&[&["dec", "text"], &cbc[..]].concat(), 8);
    assert!(
        said.contains("get the complete text again") && !said.contains("--no-padding"),
        "{said}"
    );
    let said = bench.fails(&[&["dec", "text", "--no-padding"], &cbc[..]].concat(), 8);
    assert!(
        said.contains("get the complete text again") && !said.contains("--no-padding"),
        "{said}"
    );
    let said = bench.fails(&[&["enc", "text", "--no-padding"], &cbc[..]].concat(), 8);
    assert!(said.contains("leave --no-padding out"), "{said}");
    bench.ok(&[&["enc", "text", "-o", "sealed"], &cbc[..]].concat());
    let said = bench.fails(&[&["enc", "text", "-a", "AES-128-ECB"], &iv[..]].concat(), 2);
    assert!(said.contains("leave --iv out"), "{said}");
    let said = bench.fails(&["mac", "hmac-sha-256", "-k", "key", "text", "--nonce", "00"], 2);
    assert!(said.contains("leave --nonce out"), "{said}");
}
