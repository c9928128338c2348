//! Checks that `unsafe` code appears only where the crate's docs allow it.

use std::fs;
use std::path::Path;

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn unsafe_blocks_are_only_at_the_border() {
    let (mut found, mut blocks) = (Vec::new(), 0);
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    for (path, text) in found {
        let block = concat!("unsafe", " {");
        let here = text.matches(block).count();
        assert!(here == 0 || path.contains("/border/"), "{path} has {here} unsafe blocks");
        blocks += here;
    }
    assert!(blocks > 0, "the test looks for nothing");
}
