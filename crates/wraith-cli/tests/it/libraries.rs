//! The cryptographic libraries in docs/THREATS.md must be those that Cargo.lock puts into the
//! program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::documentation::{document, table};

/// Building blocks of cryptographic libraries. A package that depends on one of these counts as
/// one.
const SIGNS: [&str; 9] = [
    "aws-lc-sys",
    "cipher",
    "digest",
    "hkdf",
    "hmac",
    "rand_core",
    "signature",
    "subtle",
    "zeroize",
];
/// Packages that depend on one of them and compute nothing: a container with wipeable elements, and
/// the buffer of a hash function.
const NO_CRYPTOGRAPHY: [&str; 2] = ["arrayvec", "block-buffer"];

/// Cargo.lock has the dependencies of all packages of the workspace. If only a benchmark needs more
/// of a library, these are its dependencies in the program.
const OF_THE_PROGRAM: [(&str, &[&str]); 1] = [("snow", &["rustc_version", "subtle"])];

/// A package of Cargo.lock: its name and version.
type Package = (String, String);

/// Returns every package of Cargo.lock with the names of its dependencies. A name with several
/// versions is followed by its version.
fn locked() -> BTreeMap<Package, Vec<String>> {
    let lock = document("Cargo.lock");
    let packages = lock.split("[[package]]").skip(1).map(|block| {
        let value = |name| block.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let value = |name| value(name).trim_matches('"').to_owned();
        let dependencies = block.lines().filter_map(|line| line.strip_prefix(" \""));
        let dependencies = dependencies.map(|line| line.trim_end_matches("\",").to_owned());
        ((value("name = "), value("version = ")), dependencies.collect())
    });
    packages.collect()
}

/// Returns the dependencies in the manifest of our crate `name`, except those for tests; `None` if
/// it is not our crate.
fn declared(name: &str) -> Option<BTreeSet<String>> {
    // The folder of `wraith-p2p-cli` is `wraith-cli`, and that of `wraith-p2p` is `wraith`.
    let folder = name.replacen("wraith-p2p", "wraith", 1);
    let manifest = format!("crates/{folder}/Cargo.toml");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = std::fs::read_to_string(root.join(manifest)).ok()?;
    let (mut names, mut counts) = (BTreeSet::new(), false);
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            counts = section.ends_with("dependencies]") && !section.contains("dev-dependencies");
        } else if counts {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            names.insert(match &line[..end] {
                "wraith" => "wraith-p2p".to_owned(),
                "wraith-commands" => "wraith-p2p-commands".to_owned(),
                name => name.to_owned(),
            });
        }
    }
    Some(names)
}

/// Returns the packages that the program contains, on any platform.
fn of_the_program(locked: &BTreeMap<Package, Vec<String>>) -> BTreeSet<Package> {
    let find = |dependency: &str| {
        let (name, version) = dependency.split_once(' ').unwrap_or((dependency, ""));
        let fits = |package: &&Package| package.0 == name && package.1.starts_with(version);
        locked.keys().find(fits).unwrap().clone()
    };
    let (mut seen, mut open) = (BTreeSet::new(), vec![find("wraith-p2p-cli")]);
    while let Some(package) = open.pop() {
        if !seen.insert(package.clone()) {
            continue;
        }
        let fewer = OF_THE_PROGRAM.iter().find(|(name, _)| *name == package.0);
        let fewer = fewer.map(|(_, names)| names.iter().map(|name| (*name).to_owned()).collect());
        let ours = declared(&package.0).or(fewer);
        let counts = |dependency: &&String| {
            let name = dependency.split(' ').next().unwrap();
            ours.as_ref().is_none_or(|declared| declared.contains(name))
        };
        open.extend(locked[&package].iter().filter(counts).map(|dependency| find(dependency)));
    }
    seen
}

/// Returns name and version of each library in the table of docs/THREATS.md, with its documented
/// state.
fn documented() -> BTreeMap<Package, String> {
    let mut libraries = BTreeMap::new();
    for row in table(&document("docs/THREATS.md"), "| library |") {
        let list = |cell: &str| -> Vec<String> {
            cell.split(',').map(|item| item.trim().trim_matches('`').to_owned()).collect()
        };
        let (names, versions) = (list(&row[0]), list(&row[1]));
        assert_eq!(names.len(), versions.len(), "{row:?}");
        libraries.extend(names.into_iter().zip(versions).map(|library| (library, row[3].clone())));
    }
    libraries
}

#[test]
fn the_threats_name_every_cryptographic_library_in_the_version_that_is_used() {
    let locked = locked();
    let program = of_the_program(&locked);
    assert!(program.iter().any(|(name, _)| name == "tokio"), "the walk finds what is there");
    assert!(!program.iter().any(|(name, _)| name == "proptest"), "and no tests");
    let documented = documented();
    for library in documented.keys() {
        assert!(program.contains(library), "docs/THREATS.md names {library:?}, which is not used");
    }
    let is_sign = |name: &str| SIGNS.contains(&name);
    for package in program.iter().filter(|(name, _)| declared(name).is_none()) {
        let mut dependencies = locked[package].iter();
        let cryptographic = is_sign(&package.0)
            || dependencies.any(|dependency| is_sign(dependency.split(' ').next().unwrap()));
        if cryptographic && !NO_CRYPTOGRAPHY.contains(&&*package.0) {
            assert!(documented.contains_key(package), "docs/THREATS.md lacks {package:?}");
        }
    }
}

#[test]
fn the_threats_say_which_library_is_a_pre_release() {
    for ((name, version), state) in documented() {
        let says = state.to_lowercase().contains("pre-release");
        assert_eq!(says, version.contains('-'), "{name} {version}: {state}");
    }
}
