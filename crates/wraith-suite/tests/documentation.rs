//! Checks that docs/ALGORITHMS.md matches the code.
//!
//! Every algorithm has one row, with its name, its standard, its sizes and its implementations
//! under both choices of [`Backends`]. Every test that a row names exists.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use wraith_kernels::detect::{Backends, Level};
use wraith_suite::encrypt::hpke;
use wraith_suite::sign::slh_dsa;
use wraith_suite::{Backend, aead, agree, cipher, encrypt, hash, kem, mac, rand, sign};

/// A table: the cells of its head and of its rows.
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

fn tables() -> Vec<Table> {
    let document = read("../../docs/ALGORITHMS.md").unwrap();
    let lines: Vec<_> = document.lines().collect();
    let blocks = lines.split(|line| !line.starts_with('|')).filter(|block| !block.is_empty());
    let cells = |line: &&str| -> Vec<String> {
        let inside = line.trim().trim_start_matches('|').trim_end_matches('|');
        inside.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    blocks
        .map(|block| Table { head: cells(&block[0]), rows: block[2..].iter().map(cells).collect() })
        .collect()
}

/// Returns the only table with this head of the first column.
fn table(first: &str) -> Table {
    let mut found = tables().into_iter().filter(|table| table.head[0] == first);
    let table = found.next().unwrap_or_else(|| panic!("no table of '{first}'"));
    assert!(found.next().is_none(), "two tables of '{first}'");
    table
}

impl Table {
    fn cell<'a>(&self, row: &'a [String], head: &str) -> &'a str {
        let column = self.head.iter().position(|each| each == head);
        &row[column.unwrap_or_else(|| panic!("no column '{head}'"))]
    }

    /// Checks that the rows are those of `names`, each once.
    fn has(&self, names: &[String]) {
        let rows: Vec<_> = self.rows.iter().map(|row| row[0].trim_matches('`')).collect();
        for name in names {
            let times = rows.iter().filter(|row| *row == name).count();
            assert_eq!(times, 1, "rows of {name} in the table of '{}'", self.head[0]);
        }
        for row in &rows {
            assert!(names.iter().any(|name| name == row), "{row} is none of '{}'", self.head[0]);
        }
    }
}

/// Checks that the rows are those of `all`, each with its standard, its implementation, and the
/// columns of `sizes`. A cell that begins with ≤ is a bound.
fn check<A: Copy + Display>(
    first: &str,
    all: &[A],
    facts: impl Fn(A) -> (&'static str, Backend),
    sizes: impl Fn(A) -> Vec<(&'static str, u64)>,
) {
    let table = table(first);
    table.has(&all.iter().map(ToString::to_string).collect::<Vec<_>>());
    for (row, algorithm) in all.iter().map(|algorithm| {
        let name = algorithm.to_string();
        (table.rows.iter().find(|row| row[0] == name).unwrap(), *algorithm)
    }) {
        assert_eq!(table.cell(row, "standard"), facts(algorithm).0, "{algorithm}");
        names_backend(table.cell(row, "computed by"), || facts(algorithm).1);
        for (head, size) in sizes(algorithm) {
            let cell = table.cell(row, head);
            match cell.strip_prefix("≤ ") {
                Some(bound) => assert!(size <= bound.parse().unwrap(), "{algorithm}: {size}"),
                None => {
                    let end = cell.find(|c: char| !c.is_ascii_digit()).unwrap_or(cell.len());
                    assert_eq!(cell[..end].parse(), Ok(size), "{head} of {algorithm}");
                }
            }
        }
    }
}

/// Checks the backend against a cell. Fast is the first variant for which this processor has the
/// features, else the last variant. Conservative is the last variant.
fn names_backend(cell: &str, backend: impl Fn() -> Backend) {
    static CHOICE: Mutex<()> = Mutex::new(());
    let _one_at_a_time = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
    Backends::choose(Some(Backends::Fast));
    let fast = backend().to_string();
    Backends::choose(Some(Backends::Conservative));
    let conservative = backend().to_string();
    Backends::choose(None);
    assert_eq!(fast, said(cell, has), "'{cell}', fast");
    let none = |feature: &str| feature == "portable";
    assert_eq!(conservative, said(cell, none), "'{cell}', conservative");
}

/// Returns the backend that a cell documents for a processor with the features that `has` accepts,
/// in the format of [`Backend`].
fn said(cell: &str, has: impl Fn(&str) -> bool) -> String {
    let (first, last) = cell.split_once("; else ").unwrap_or((cell, ""));
    let named = |name: &str| match name.strip_prefix("library `") {
        Some(library) => library.trim_end_matches('`').to_owned(),
        None if name == "portable" => "own (portable)".to_owned(),
        None => name.to_owned(),
    };
    let Some(own) = first.strip_prefix("own: ") else {
        // The text after a semicolon concerns only a part.
        return named(cell.split(';').next().unwrap());
    };
    match own.split(" or ").find(|way| way.split(", ").all(&has)) {
        Some(way) => format!("own ({way})"),
        None => named(last),
    }
}

/// Returns whether the build has kernels and may use a feature of the processor that the document
/// names.
#[cfg(target_arch = "x86_64")]
fn has(feature: &str) -> bool {
    use std::arch::is_x86_feature_detected as detected;
    let may = |level| cfg!(feature = "kernels") && Level::highest() >= level;
    let avx512 = || may(Level::Avx512) && detected!("avx512bw") && detected!("avx512vl");
    let avx2 = || may(Level::Avx2);
    match feature {
        "portable" => true,
        "AVX-512" => avx512(),
        "IFMA" => avx512() && detected!("avx512ifma"),
        "AVX2" => avx2() && detected!("avx2"),
        "VAES" => avx2() && detected!("avx2") && detected!("vaes"),
        "VPCLMULQDQ" => avx2() && detected!("vpclmulqdq"),
        "GFNI" => avx2() && detected!("gfni"),
        "AES-NI" => may(Level::AesNi) && detected!("aes"),
        "BMI2" => avx2() && detected!("bmi1") && detected!("bmi2"),
        "ADX" => avx2() && detected!("adx"),
        other => panic!("what is {other}?"),
    }
}

/// Returns false: the features are those of x86-64.
#[cfg(not(target_arch = "x86_64"))]
fn has(feature: &str) -> bool {
    feature == "portable"
}

#[test]
fn the_backend_table_matches_each_processor() {
    let cell = "own: AVX-512, VAES or VAES or AES-NI; else library `aes`";
    let with = |features: &[&str]| said(cell, |feature| features.contains(&feature));
    assert_eq!(with(&["AES-NI", "VAES", "AVX-512"]), "own (AVX-512, VAES)");
    assert_eq!(with(&["AES-NI", "VAES"]), "own (VAES)");
    assert_eq!(with(&["AES-NI", "AVX-512"]), "own (AES-NI)");
    assert_eq!(with(&[]), "aes");
    let fallback = said("own: AVX-512, BMI2; else AWS-LC", |_| false);
    assert_eq!(fallback, Backend::AwsLc.to_string());
    assert_eq!(said("AWS-LC; the padding: own", |_| true), "AWS-LC");
}

#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
#[test]
fn the_kernels_are_as_documented() {
    let kernels = wraith_kernels::kernels();
    let names: std::collections::BTreeSet<_> = kernels.iter().map(|each| each.name()).collect();
    let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    let mut table = table("kernel");
    table.rows.retain(|row| !row[0].is_empty());
    assert_eq!(table.rows.len(), names.len(), "{names:?}");
    table.has(&names);
}

#[test]
fn hashes_ciphers_aeads_and_macs_are_as_documented() {
    let facts = |each: hash::Algorithm| (each.standard(), each.backend());
    check("hash", hash::Algorithm::ALL, facts, |each| {
        vec![("digest", each.digest_bytes() as u64), ("block", each.block_bytes() as u64)]
    });
    let facts = |each: cipher::Algorithm| (each.standard(), each.backend());
    check("cipher", cipher::Algorithm::ALL, facts, |each| {
        vec![("key", each.key_bytes() as u64), ("IV", each.iv_bytes() as u64)]
    });
    let ciphers = table("cipher");
    for row in &ciphers.rows {
        let algorithm: cipher::Algorithm = row[0].parse().unwrap();
        let is_whole = ciphers.cell(row, "takes") == "whole blocks";
        assert_eq!(is_whole, algorithm.wants_whole_blocks(), "{algorithm}");
    }
    let facts = |each: aead::Algorithm| (each.standard(), each.backend());
    check("AEAD", aead::Algorithm::ALL, facts, |each| {
        vec![
            ("key", each.key_bytes() as u64),
            ("nonce", each.nonce_bytes() as u64),
            ("tag", each.tag_bytes() as u64),
            ("text at most", each.text_max()),
        ]
    });
    let facts = |each: mac::Algorithm| (each.standard(), each.backend());
    check("MAC", mac::Algorithm::ALL, facts, |each| {
        let key = each.key_bytes().map(|bytes| ("key", bytes as u64));
        let rest = [("nonce", each.nonce_bytes() as u64), ("tag", each.tag_bytes() as u64)];
        key.into_iter().chain(rest).collect()
    });
    let macs = table("MAC");
    for row in &macs.rows {
        let takes_any = row[0].parse::<mac::Algorithm>().unwrap().key_bytes().is_none();
        assert_eq!(macs.cell(row, "key") == "any", takes_any, "{}", row[0]);
    }
}

#[test]
fn signatures_are_as_documented() {
    let rsa = sign::Algorithm::RsaPssSha256.generate().unwrap().to_pkcs8();
    let facts = |each: sign::Algorithm| (each.standard(), each.backend());
    check("signature", sign::Algorithm::ALL, facts, |each| {
        let sizes = |secret: usize, public: usize, signature: usize| {
            let sizes = [secret, public, signature].map(|bytes| bytes as u64);
            vec![("secret key", sizes[0]), ("public key", sizes[1]), ("signature bytes", sizes[2])]
        };
        if let Some(signature) = slh_dsa::signature_bytes(each) {
            // Generation of a new one takes seconds.
            let is_good = |n: &usize| each.verifying_key(&vec![0; 2 * n]).is_ok();
            let n = [16, 24, 32].into_iter().find(is_good).unwrap();
            let key = each.signing_key(&vec![0; 4 * n]).unwrap();
            return sizes(key.to_raw().len(), key.verifying_key().to_raw().len(), signature);
        }
        let key = match each.name().starts_with("RSA") {
            true => each.signing_key_pkcs8(&rsa),
            false => each.generate(),
        };
        let key = key.unwrap();
        let signature = key.sign(b"message").unwrap();
        sizes(key.to_raw().len(), key.verifying_key().to_raw().len(), signature.len())
    });
}

#[test]
fn agreements_and_kems_are_as_documented() {
    let facts = |each: agree::Algorithm| (each.standard(), each.backend());
    check("agreement", agree::Algorithm::ALL, facts, |each| {
        let key = each.generate().unwrap();
        let public = key.public_key();
        vec![
            ("secret key", key.to_raw().len() as u64),
            ("public key", public.len() as u64),
            ("secret", key.agree(&public).unwrap().len() as u64),
        ]
    });
    let facts = |each: kem::Algorithm| (each.standard(), each.backend());
    check("KEM", kem::Algorithm::ALL, facts, |each| {
        let key = each.generate().unwrap();
        let public = key.encapsulation_key();
        let (ciphertext, secret) = public.encapsulate().unwrap();
        assert_eq!(public.to_raw().len(), each.encapsulation_key_bytes());
        assert_eq!(ciphertext.len(), each.ciphertext_bytes());
        vec![
            ("seed", key.to_raw().len() as u64),
            ("encapsulation key", public.to_raw().len() as u64),
            ("ciphertext", ciphertext.len() as u64),
            ("secret", secret.len() as u64),
        ]
    });
}

#[test]
fn encryption_is_as_documented() {
    let rsa = encrypt::Algorithm::RsaOaepSha256.generate().unwrap().to_pkcs8();
    let facts = |each: encrypt::Algorithm| (each.standard(), each.backend());
    check("encryption", encrypt::Algorithm::ALL, facts, |each| {
        let key = match each.name().starts_with("RSA") {
            true => each.decryption_key_pkcs8(&rsa),
            false => each.generate(),
        };
        let public = key.unwrap().encryption_key();
        let message = b"m";
        let is_added = each == encrypt::Algorithm::Sm2;
        let ciphertext = public.encrypt(message).unwrap().len();
        let ciphertext = if is_added { ciphertext - message.len() } else { ciphertext };
        vec![("message at most", public.message_max() as u64), ("ciphertext", ciphertext as u64)]
    });
}

/// Returns the names after `keyword` at the beginning of lines in `paths`. Ignores the code after a
/// `mod tests`.
fn declared(paths: &[&str], keyword: &str) -> Vec<String> {
    let code = paths.iter().map(|path| read(path).unwrap_or_else(|| panic!("no {path}")));
    let names = code.flat_map(|code| {
        let lines = code.lines().take_while(|line| *line != "mod tests {");
        let names = lines.filter_map(|line| line.strip_prefix(keyword));
        let end = |name: &str| name.find(|c: char| c != '_' && !c.is_alphanumeric());
        names.map(|name| name[..end(name).unwrap()].to_owned()).collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn functions_and_types_that_have_no_algorithm_are_as_documented() {
    let of_crypto = ["kdf/argon2id", "kdf"].map(|name| format!("../wraith-crypto/src/{name}.rs"));
    let of_suite = ["hkdf", "pbkdf2", "scrypt"].map(|name| format!("src/kdf/{name}.rs"));
    let kdfs: Vec<_> = of_crypto.iter().chain(&of_suite).map(String::as_str).collect();
    let kdfs = declared(&kdfs, "pub fn ");
    table("derivation").has(&kdfs);
    table("key wrap function").has(&declared(&["src/aead/key_wrap.rs"], "pub fn "));
    let generators = [
        "../wraith-crypto/src/rand.rs",
        "src/rand/ctr_drbg.rs",
        "src/rand/hash_drbg.rs",
        "src/rand/hmac_drbg.rs",
    ];
    let generators = declared(&generators, "pub struct ");
    table("generator").has(&generators);
    assert_eq!(rand::CtrDrbg::SEED_BYTES, 48, "as documented");
    let operations = declared(&["src/bignum/mod.rs"], "    pub fn ");
    let operations: BTreeSet<_> = operations.into_iter().collect();
    let table = table("operation");
    for row in &table.rows {
        assert!(operations.contains(row[0].trim_matches('`')), "no operation {}", row[0]);
    }
    let power = table.rows.iter().find(|row| row[0] == "`mod_exp`").unwrap();
    names_backend(table.cell(power, "computed by"), || Backend::AwsLc);
}

#[test]
fn the_parts_of_hpke_are_as_documented() {
    use hpke::{Aead, Kdf, Kem};
    let kems = [Kem::P256, Kem::P384, Kem::P521, Kem::X25519, Kem::X448].map(|kem| (kem, kem.id()));
    let hybrids = [Kem::MlKem512, Kem::MlKem768, Kem::MlKem1024, Kem::XWing];
    let kems = kems.into_iter().chain(hybrids.map(|kem| (kem, kem.id())));
    let kems = kems.map(|(kem, id)| ("KEM", format!("{kem:?}"), id));
    let kdfs = [Kdf::Sha256, Kdf::Sha384, Kdf::Sha512].map(|kdf| (format!("{kdf:?}"), kdf.id()));
    let aeads = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305, Aead::ExportOnly];
    let aeads = aeads.map(|aead| (format!("{aead:?}"), aead.id()));
    let parts: Vec<_> = kems
        .chain(kdfs.map(|(name, id)| ("KDF", name, id)))
        .chain(aeads.map(|(name, id)| ("AEAD", name, id)))
        .map(|(part, name, id)| [part.to_owned(), name, format!("0x{id:04x}")])
        .collect();
    let rows: Vec<_> = table("HPKE part").rows.iter().map(|row| row[..3].to_vec()).collect();
    assert_eq!(rows, parts);
    let code = read("src/encrypt/hpke/kem.rs").unwrap() + &read("src/encrypt/hpke/mod.rs").unwrap();
    for kind in ["Kem", "Kdf", "Aead"] {
        let (_, variants) = code.split_once(&format!("pub enum {kind} {{")).unwrap();
        let (variants, _) = variants.split_once("\n}").unwrap();
        let variants = variants.lines().map(str::trim).filter(|line| line.ends_with(','));
        for variant in variants.map(|line| line.trim_end_matches(',')) {
            assert!(rows.iter().any(|row| row[1] == variant), "no row for {kind}::{variant}");
        }
    }
}

/// Returns whether the path names a test: `area::name` of the integration tests, or the path of one
/// in a module of this crate, of wraith-crypto, or, after `kernels`, of wraith-kernels.
fn is_test(path: &str) -> bool {
    let Some((module, name)) = path.rsplit_once("::") else { return false };
    let module = module.replace("::", "/");
    let sources = match module.strip_prefix("kernels/") {
        Some(module) => vec![format!("../wraith-kernels/src/{module}")],
        None => ["src", "../wraith-crypto/src"].map(|of| format!("{of}/{module}")).to_vec(),
    };
    let modules = sources
        .iter()
        .flat_map(|source| ["", "/mod", "/tests"].map(|end| format!("{source}{end}.rs")));
    let tests = ["tests/it", "tests", "../wraith-crypto/tests/it"];
    let files = tests.map(|of| format!("{of}/{module}.rs")).into_iter().chain(modules);
    files.filter_map(|file| read(&file)).any(|code| {
        let lines: Vec<_> = code.lines().map(str::trim).collect();
        let declaration = format!("fn {name}(");
        let is_test = |at: usize| lines[at.saturating_sub(3)..at].contains(&"#[test]");
        // A line of `published!`.
        let of_file = format!("{name}:");
        let mut numbered = lines.iter().enumerate();
        code.contains("published! {") && lines.iter().any(|line| line.starts_with(&of_file))
            || numbered.any(|(at, line)| line.starts_with(&declaration) && is_test(at))
    })
}

#[test]
fn every_row_names_tests_that_are_there() {
    let mut seen = 0;
    let mut missing = BTreeSet::new();
    for table in tables().iter().filter(|table| table.head.iter().any(|head| head == "checked by"))
    {
        for row in &table.rows {
            let tests: Vec<_> = table.cell(row, "checked by").split(", ").collect();
            for test in tests {
                let path = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
                if !path.is_some_and(is_test) {
                    missing.insert(test.to_owned());
                }
                seen += 1;
            }
            assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        }
    }
    assert!(missing.is_empty(), "no tests: {missing:#?}");
    assert!(seen > 150, "{seen}");
    assert!(is_test("documentation::every_row_names_tests_that_are_there"));
    assert!(!is_test("documentation::is_test") && !is_test("hash::") && !is_test("documentation"));
}
