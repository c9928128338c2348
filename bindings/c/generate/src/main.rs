//! Writes `bindings/c/include/wraith.h` from the sources of `crates/wraith-c`: `cargo run -p
//! wraith-c-header`.
//!
//! The header keeps the order of the sources, so a change of one function changes one place of the
//! header.
#![forbid(unsafe_code)]

mod expand;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cbindgen::{
    Builder, Config, DocumentationLength, DocumentationStyle, EnumConfig, Language, SortKey, Style,
};

const INTRODUCTION: &str = include_str!("introduction.h");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn place() -> PathBuf {
    repository().join("bindings/c/include/wraith.h")
}

/// Types that no function signature names. The C API passes them as plain integers, because a value
/// may be one that a later version adds.
const NUMBERS: [&str; 10] = [
    "wraith_event_kind_t",
    "wraith_file_status_t",
    "wraith_lost_reason_t",
    "wraith_role_t",
    "wraith_answer_t",
    "wraith_offer_to_t",
    "wraith_on_conflict_t",
    "wraith_turn_t",
    "wraith_callers_t",
    "wraith_close_cause_t",
];

/// Returns the header that belongs to the current sources.
fn header() -> Result<String> {
    let mut config = Config {
        language: Language::C,
        header: Some(INTRODUCTION.trim_end().to_owned()),
        include_guard: Some("WRAITH_H".to_owned()),
        cpp_compat: true,
        documentation: true,
        documentation_style: DocumentationStyle::C99,
        documentation_length: DocumentationLength::Full,
        style: Style::Both,
        usize_is_size_t: true,
        line_length: 100,
        tab_width: 4,
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        enumeration: EnumConfig { enum_class: false, ..EnumConfig::default() },
        ..Config::default()
    };
    config.export.include = NUMBERS.map(str::to_owned).to_vec();
    config.function.sort_by = Some(SortKey::None);
    config.constant.sort_by = Some(SortKey::None);
    // The tests make the header in several threads.
    let name = format!("wraith-c-{}-{:?}.rs", std::process::id(), std::thread::current().id());
    let sources = std::env::temp_dir().join(name);
    std::fs::write(&sources, expand::sources(&repository().join("crates/wraith-c/src/lib.rs"))?)?;
    let bindings = Builder::new().with_config(config).with_src(&sources).generate();
    std::fs::remove_file(&sources)?;
    let bindings = bindings.context("cannot read the sources of wraith-c")?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    Ok(String::from_utf8(text)?)
}

fn main() -> Result<()> {
    let place = place();
    std::fs::write(&place, header()?).with_context(|| format!("cannot write {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_that_is_committed_is_the_one_of_the_sources() {
        let committed = std::fs::read_to_string(place()).unwrap();
        assert!(committed == header().unwrap(), "run `cargo run -p wraith-c-header`");
    }

    #[test]
    fn every_name_of_the_header_has_our_prefix() {
        let header = header().unwrap();
        let code = header.lines().map(|line| line.split("//").next().unwrap_or(""));
        let names =
            code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_'))).filter(
                |word| word.ends_with("_t") || word.chars().all(|c| c.is_uppercase() || c == '_'),
            );
        let foreign = ["size_t", "int32_t", "uint8_t", "uint32_t", "uint64_t", "C", "NULL", ""];
        for name in names.filter(|name| !foreign.contains(name)) {
            let ours = name.starts_with("wraith_") || name.starts_with("WRAITH_");
            assert!(ours || name == "__STDC_VERSION__", "{name}");
        }
    }

    #[test]
    fn the_readme_explains_every_status() {
        let readme = std::fs::read_to_string(repository().join("bindings/c/README.md")).unwrap();
        let header = header().unwrap();
        let statuses = header.split("enum wraith_status_t").nth(1).unwrap().split("};").next();
        let statuses = statuses.unwrap().lines().filter_map(|line| {
            line.trim().strip_prefix("WRAITH_")?.trim_end_matches(',').split_once(" = ")
        });
        let mut count = 0;
        for (name, number) in statuses {
            let row = format!("| {number} | `{name}` |");
            assert!(readme.contains(&row), "{row}");
            count += 1;
        }
        assert!(count > 20, "the test finds {count} statuses");
    }
}
