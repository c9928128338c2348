//! Compatibility with `openssl`, in both directions.

use std::process::{Command, Stdio};

use super::{Bench, bytes};
use crate::support::skipped;

/// Returns a bench with a text, or `None` without OpenSSL 3.
fn bench_with_text() -> Option<Bench> {
    has_openssl().then(|| Bench::with(&[("text", b"text")]))
}

/// Returns whether `openssl` of version 3 or later is installed.
fn has_openssl() -> bool {
    let output = Command::new("openssl").arg("version").output();
    let is_there = output.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let major = text.strip_prefix("OpenSSL ").and_then(|rest| rest.split('.').next());
        major.is_some_and(|major| major.parse::<u32>().is_ok_and(|major| major >= 3))
    });
    if !is_there {
        skipped("OpenSSL 3 is not installed");
    }
    is_there
}

impl Bench {
    /// Runs `openssl …` in the folder. Returns whether it succeeds.
    fn openssl(&self, words: &[&str]) -> bool {
        let mut command = Command::new("openssl");
        command.current_dir(self.world.source()).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap().success()
    }
}

/// Our name, the openssl options that make such a key, and its options for a signature.
const SIGNATURES: [(&str, &[&str], &[&str]); 6] = [
    ("Ed25519", &["-algorithm", "ED25519"], &["-rawin"]),
    ("Ed448", &["-algorithm", "ED448"], &["-rawin"]),
    (
        "ECDSA-P-256",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        &["-rawin", "-digest", "sha256"],
    ),
    (
        "ECDSA-P-384",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        &["-rawin", "-digest", "sha384"],
    ),
    (
        "RSA-PSS-SHA-256",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        &[
            "-rawin",
            "-digest",
            "sha256",
            "-pkeyopt",
            "rsa_padding_mode:pss",
            "-pkeyopt",
            "rsa_pss_saltlen:digest",
        ],
    ),
    (
        "RSA-PKCS1-SHA-256",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        &["-rawin", "-digest", "sha256"],
    ),
];

#[test]
fn signatures_and_keys_go_both_ways() {
    if !has_openssl() {
        return;
    }
    let bench = Bench::new();
    bench.write("text", &bytes(5000));
    for (name, made, options) in SIGNATURES {
        // Our files, read by openssl; then its files, read by us.
        for is_ours in [true, false] {
            if is_ours {
                bench.ok(&["genkey", name, "-o", "key", "--force"]);
            } else {
                let words = [&["genpkey", "-out", "key"], made].concat();
                assert!(bench.openssl(&words), "{name}");
            }
            bench.ok(&["pub", "key", "-o", "public", "--force"]);
            assert!(bench.openssl(&["pkey", "-in", "key", "-pubout", "-out", "public2"]), "{name}");
            assert_eq!(bench.read("public"), bench.read("public2"), "{name} {is_ours}");

            bench.ok(&["sign", "text", "-a", name, "-k", "key", "-o", "signature", "--force"]);
            let verify = [
                "pkeyutl",
                "-verify",
                "-pubin",
                "-inkey",
                "public",
                "-in",
                "text",
                "-sigfile",
                "signature",
            ];
            assert!(bench.openssl(&[&verify[..], options].concat()), "{name} {is_ours}");
            let sign = ["pkeyutl", "-sign", "-inkey", "key", "-in", "text", "-out", "signature"];
            assert!(bench.openssl(&[&sign[..], options].concat()), "{name} {is_ours}");
            bench.ok(&["verify", "text", "-a", name, "-k", "public2", "-s", "signature"]);
        }
    }
}

#[test]
fn raw_ciphers_are_those_of_openssl_enc() {
    if !has_openssl() {
        return;
    }
    let bench = Bench::new();
    let iv = "000102030405060708090a0b0c0d0eff";
    for (name, cipher, key_bytes) in [
        ("AES-128-CBC", "-aes-128-cbc", 16),
        ("AES-256-CBC", "-aes-256-cbc", 32),
        ("AES-256-CTR", "-aes-256-ctr", 32),
        ("AES-192-CFB", "-aes-192-cfb", 24),
        ("AES-256-OFB", "-aes-256-ofb", 32),
        ("AES-128-ECB", "-aes-128-ecb", 16),
        ("SM4-CBC", "-sm4-cbc", 16),
        ("SM4-CTR", "-sm4-ctr", 16),
    ] {
        let key: String = (1..=key_bytes).map(|byte| format!("{byte:02x}")).collect();
        bench.write("key", key.as_bytes());
        let is_ecb = name.ends_with("ECB");
        for len in [0, 1, 16, 1000, 65_536, 65_537, 200_000] {
            bench.write("text", &bytes(len));
            let iv_words: &[&str] = if is_ecb { &[] } else { &["--iv", iv] };
            let words = ["enc", "text", "--raw", "-a", name, "-k", "key", "-o", "ours", "--force"];
            let output = bench.run(&[&words[..], iv_words].concat());
            assert!(output.status.success(), "{name} {len}");
            let words = ["enc", cipher, "-K", &key, "-in", "text", "-out", "theirs"];
            let iv_words: &[&str] = if is_ecb { &[] } else { &["-iv", iv] };
            assert!(bench.openssl(&[&words[..], iv_words].concat()), "{name}");
            assert!(bench.read("ours") == bench.read("theirs"), "{name} {len}");
            let words = ["dec", "theirs", "--raw", "-a", name, "-k", "key"];
            let iv_words: &[&str] = if is_ecb { &[] } else { &["--iv", iv] };
            assert!(bench.ok(&[&words[..], iv_words].concat()) == bytes(len), "{name} {len}");
        }
    }
}

#[test]
fn a_raw_text_with_the_wrong_key_leaves_no_file() {
    let bench = Bench::new();
    let iv = "00".repeat(16);
    bench.write("text", &bytes(100));
    for (name, byte) in [("key", "11"), ("other", "22")] {
        bench.write(name, byte.repeat(32).as_bytes());
    }
    let raw = ["--raw", "-a", "AES-256-CBC", "--iv", &iv];
    bench.ok(&[&["enc", "text", "-k", "key", "-o", "sealed"][..], &raw].concat());
    let words = [&["dec", "sealed", "-k", "other", "-o", "again"][..], &raw].concat();
    // One wrong key in 256 gives a text that ends like valid padding.
    let output = bench.run(&words);
    assert!(matches!(output.status.code(), Some(8 | 0)));
    assert_eq!(bench.path("again").exists(), output.status.success());
    let short = bench.read("sealed")[..50].to_vec();
    bench.write("short", &short);
    bench.fails(&[&["dec", "short", "-k", "key", "-o", "no"][..], &raw].concat(), 8);
    let said = bench.fails(&["enc", "text", "-k", "key", "--raw", "-a", "AES-256-CBC"], 2);
    assert!(said.contains("an IV of AES-256-CBC has 16 bytes, not 0"), "{said}");
    assert!(!bench.path("no").exists());
}

/// `openssl` options that make another PEM block with a key, its label, and the conversion command
/// that we suggest.
const OTHER_BLOCKS: [(&[&str], &str, &str); 4] = [
    (
        &["genrsa", "-traditional", "-out", "key", "2048"],
        "'RSA PRIVATE KEY'",
        "pkcs8 -topk8 -nocrypt",
    ),
    (
        &["ecparam", "-name", "prime256v1", "-genkey", "-out", "key"],
        "'EC PARAMETERS'",
        "pkcs8 -topk8 -nocrypt",
    ),
    (
        &["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key"],
        "'EC PRIVATE KEY'",
        "pkcs8 -topk8 -nocrypt",
    ),
    (
        &["genpkey", "-algorithm", "ED25519", "-aes-256-cbc", "-pass", "pass:x", "-out", "key"],
        "'ENCRYPTED PRIVATE KEY'",
        "pkcs8 -passin pass:x",
    ),
];

#[test]
fn keys_in_other_formats_are_reported_with_a_conversion_command() {
    let Some(bench) = bench_with_text() else { return };
    for (made, label, command) in OTHER_BLOCKS {
        assert!(bench.openssl(made), "{made:?}");
        let said = bench.fails(&["sign", "text", "-k", "key", "-o", "no"], 2);
        let proposed = command.replace(" -passin pass:x", "");
        assert!(
            said.contains(label) && said.contains(&format!("openssl {proposed} -in")),
            "{said}"
        );
        let words: Vec<&str> = command.split(' ').chain(["-in", "key", "-out", "new"]).collect();
        assert!(bench.openssl(&words), "{words:?}");
        bench.ok(&["sign", "text", "-k", "new", "-o", "signature", "--force"]);
    }
    let made = ["genrsa", "-traditional", "-aes128", "-passout", "pass:x", "-out", "key", "2048"];
    assert!(bench.openssl(&made));
    let said = bench.fails(&["sign", "text", "-k", "key", "-o", "no"], 2);
    assert!(said.contains("an encrypted 'RSA PRIVATE KEY'"), "{said}");
    let words = "pkcs8 -topk8 -nocrypt -passin pass:x -in key -out new";
    assert!(said.contains("openssl pkcs8 -topk8 -nocrypt -in FILE -out NEW"), "{said}");
    assert!(bench.openssl(&words.split(' ').collect::<Vec<_>>()));
    bench.ok(&["sign", "text", "-k", "new", "-o", "signature", "--force"]);
    let certificate = [
        "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=x", "-keyout", "key", "-out",
        "cert",
    ];
    assert!(bench.openssl(&certificate));
    bench.ok(&["sign", "text", "-k", "key", "-o", "signature", "--force"]);
    let said = bench.fails(&["verify", "text", "-k", "cert", "-s", "signature"], 2);
    assert!(said.contains("openssl x509 -pubkey -noout -in"), "{said}");
    let words = ["x509", "-pubkey", "-noout", "-in", "cert", "-out", "public"];
    assert!(bench.openssl(&words));
    bench.ok(&["verify", "text", "-k", "public", "-s", "signature"]);
}

/// `openssl genpkey` options, and our message about such a key.
const OTHER_KEYS: [(&[&str], &str); 6] = [
    (&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], "2048 to 4096 bits"),
    (&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2050"], "bits, a multiple of 8"),
    (&["-algorithm", "RSA-PSS"], "a key for RSA-PSS alone"),
    (&["-algorithm", "X25519"], "which is for key agreement"),
    (&["-algorithm", "X448"], "which is for key agreement"),
    (
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
        "a key of an unsupported curve",
    ),
];

#[test]
fn unsupported_keys_are_reported_by_their_kind() {
    let Some(bench) = bench_with_text() else { return };
    for (made, expected) in OTHER_KEYS {
        assert!(bench.openssl(&[&["genpkey", "-out", "key"], made].concat()), "{made:?}");
        assert!(bench.openssl(&["pkey", "-in", "key", "-pubout", "-out", "public"]));
        for words in [
            &["sign", "text", "-k", "key", "-o", "no"][..],
            &["pub", "key", "-o", "no"],
            &["verify", "text", "-k", "public", "-s", "text"],
            &["enc", "text", "--to", "public", "-o", "no"],
        ] {
            let said = bench.fails(words, 2);
            assert!(said.contains(expected), "{words:?}: {said}");
        }
    }
    bench.ok(&["genkey", "Ed25519", "-o", "ed"]);
    let said = bench.fails(&["sign", "text", "-k", "ed", "-a", "RSA-PSS-SHA-256", "-o", "no"], 2);
    assert!(said.contains("a key of Ed25519, not of RSA-PSS-SHA-256"), "{said}");
    assert!(bench.openssl(&["pkey", "-in", "ed", "-outform", "DER", "-out", "der"]));
    let said = bench.fails(&["sign", "text", "-k", "der", "-o", "no"], 2);
    assert!(said.contains("openssl pkey -inform DER -in"), "{said}");
    assert!(bench.openssl(&["pkey", "-inform", "DER", "-in", "der", "-out", "pem"]));
    bench.ok(&["sign", "text", "-k", "pem", "-o", "signature"]);
}

#[test]
fn a_signature_of_rsa_made_in_another_way_is_not_called_bad_without_a_word_of_that() {
    let Some(bench) = bench_with_text() else { return };
    assert!(bench.openssl(&["genpkey", "-algorithm", "RSA", "-out", "key"]));
    bench.ok(&["pub", "key", "-o", "public"]);
    assert!(bench.openssl(&["dgst", "-sha256", "-sign", "key", "-out", "signature", "text"]));
    let said = bench.fails(&["verify", "text", "-k", "public", "-s", "signature"], 8);
    assert!(said.contains("-a RSA-PKCS1-SHA-256"), "{said}");
    bench.ok(&["verify", "text", "-a", "RSA-PKCS1-SHA-256", "-k", "public", "-s", "signature"]);
}

#[test]
fn ecdsa_uses_the_hash_of_its_curve_and_names_another_one() {
    let Some(bench) = bench_with_text() else { return };
    for (curve, hash, other) in [
        ("P-224", "sha224", "sha256"),
        ("P-256", "sha256", "sha384"),
        ("P-384", "sha384", "sha256"),
        ("P-521", "sha512", "sha256"),
        ("brainpoolP256r1", "sha256", "sha512"),
        ("brainpoolP384r1", "sha384", "sha256"),
        ("brainpoolP512r1", "sha512", "sha256"),
    ] {
        bench.ok(&["genkey", &format!("ECDSA-{curve}"), "-o", "key", "--force"]);
        bench.ok(&["pub", "key", "-o", "public", "--force"]);
        let sign = |digest: &str| {
            let option = format!("-{digest}");
            assert!(
                bench.openssl(&["dgst", &option, "-sign", "key", "-out", "signature", "text"]),
                "{curve} {digest}"
            );
        };
        let verify = ["verify", "text", "-k", "public", "-s", "signature"];
        sign(hash);
        bench.ok(&verify);
        sign(other);
        let said = bench.fails(&verify, 8);
        let named = format!("ECDSA-{curve} uses SHA-{} in wraith", &hash[3..]);
        assert!(said.contains(&named), "{said}");
        assert!(said.contains(&format!("openssl dgst -{hash}")), "{said}");
    }
}

#[test]
fn keys_with_compressed_points_or_explicit_curves_are_reported_with_a_conversion_command() {
    let Some(bench) = bench_with_text() else { return };
    let compressed = ["-ec_conv_form", "compressed"];
    let explicit = ["-ec_param_enc", "explicit"];
    for curve in ["P-224", "P-256", "P-384", "P-521", "brainpoolP384r1"] {
        bench.ok(&["genkey", &format!("ECDSA-{curve}"), "-o", "key", "--force"]);
        bench.ok(&["sign", "text", "-k", "key", "-o", "signature", "--force"]);
        for (form, expected) in [
            (&compressed[..], "a compressed point"),
            (&explicit, "given by parameters, not by name"),
            (&[compressed, explicit].concat(), "given by parameters, not by name"),
        ] {
            let make = ["pkey", "-in", "key", "-out"];
            assert!(bench.openssl(&[&make[..], &["private"], form].concat()), "{curve}");
            assert!(bench.openssl(&[&make[..], &["public", "-pubout"], form].concat()), "{curve}");
            // The advice as printed, with the names of the files.
            let advised = |said: &str| {
                let (_, command) = said.trim_end().split_once("openssl ").unwrap();
                let words = command.split_whitespace();
                words.map(str::to_owned).collect::<Vec<_>>()
            };
            let follow = |said: &str, file: &str| {
                assert!(said.contains(expected), "{curve}: {said}");
                let words = advised(said);
                let words: Vec<&str> = words
                    .iter()
                    .map(|word| match word.as_str() {
                        "FILE" => file,
                        "NEW" => "new",
                        word => word,
                    })
                    .collect();
                assert!(bench.openssl(&words), "{words:?}");
            };
            follow(&bench.fails(&["sign", "text", "-k", "private", "-o", "no"], 2), "private");
            bench.ok(&["sign", "text", "-k", "new", "-o", "signature2", "--force"]);
            let verify = ["verify", "text", "-k", "public", "-s", "signature"];
            follow(&bench.fails(&verify, 2), "public");
            for signature in ["signature", "signature2"] {
                bench.ok(&["verify", "text", "-k", "new", "-s", signature]);
            }
        }
    }
}
