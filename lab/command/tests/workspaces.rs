//! The two workspaces share a target folder, and all crates that both build in the same way.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toml_edit::{DocumentMut, Item};

fn parsed(name: &str) -> DocumentMut {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(name)).unwrap();
    text.parse().unwrap()
}

/// Returns the settings of a profile, and of each package with settings of its own.
fn settings(manifest: &DocumentMut, profile: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let profile = manifest["profile"][profile].as_table_like().unwrap();
    for (key, item) in profile.iter() {
        match item.as_table_like() {
            Some(packages) if key == "package" => {
                found.extend(packages.iter().map(|(name, item)| (name.to_owned(), text(item))));
            }
            _ => {
                found.insert(key.to_owned(), text(item));
            }
        }
    }
    found
}

/// Returns a value without surrounding space and comments.
fn text(item: &Item) -> String {
    let words: Vec<String> = item.to_string().split_whitespace().map(String::from).collect();
    words.join(" ")
}

/// Returns the versions of each package in a lock file.
fn versions(lock: &DocumentMut) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for package in lock["package"].as_array_of_tables().unwrap() {
        let field = |name: &str| package[name].as_str().unwrap().to_owned();
        found.entry(field("name")).or_default().push(field("version"));
    }
    found
}

#[test]
fn the_profiles_are_the_same() {
    let (product, lab) = (parsed("Cargo.toml"), parsed("lab/Cargo.toml"));
    let (built, own) = (versions(&parsed("Cargo.lock")), versions(&parsed("lab/Cargo.lock")));
    for profile in ["dev", "release"] {
        let (product, lab) = (settings(&product, profile), settings(&lab, profile));
        // Each has settings for packages that only it builds.
        let is_own = |key: &str| own.contains_key(key) && !built.contains_key(key);
        let different: Vec<_> = lab
            .iter()
            .filter(|(key, value)| !is_own(key) && product.get(*key) != Some(value))
            .collect();
        assert_eq!(different, [], "profile {profile}");
    }
}

#[test]
fn a_package_of_the_product_is_optimized_in_the_tests_of_the_lab_too() {
    let (product, lab) = (parsed("Cargo.toml"), parsed("lab/Cargo.toml"));
    let own = versions(&parsed("lab/Cargo.lock"));
    let (product, lab) = (settings(&product, "dev"), settings(&lab, "dev"));
    let missing: Vec<_> = product
        .iter()
        .filter(|(name, value)| own.contains_key(*name) && lab.get(*name) != Some(value))
        .collect();
    assert_eq!(missing, []);
}

#[test]
fn a_package_in_both_lock_files_has_the_same_version() {
    let (product, lab) = (versions(&parsed("Cargo.lock")), versions(&parsed("lab/Cargo.lock")));
    // The lab may have further versions, for the programs that it races against.
    for (name, versions) in product {
        let Some(others) = lab.get(&name) else { continue };
        let shared = versions.iter().any(|version| others.contains(version));
        assert!(shared, "{name}: {versions:?} in Cargo.lock, {others:?} in lab/Cargo.lock");
    }
}
