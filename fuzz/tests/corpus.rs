//! Every committed input and some thousand variations of it, the same each time, in seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use wraith_fuzz::{Mutator, TARGETS};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The committed inputs of a target, by name.
fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpus().join(target)).unwrap().map(|item| item.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Names the input on the way out, if it makes the target panic.
struct Naming<'a>(&'a Path, &'a [u8]);

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("from {}: {:02x?}", self.0.display(), self.1);
        }
    }
}

#[test]
fn committed_inputs_and_their_variations_break_nothing() {
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        let mut mutator = Mutator::new(1);
        for (index, (file, input)) in inputs.iter().enumerate() {
            let run = |input: &[u8]| {
                let _naming = Naming(file, input);
                (target.run)(input);
            };
            run(input);
            let (_, other) = &inputs[(index + 1) % inputs.len()];
            let share = target.variations / inputs.len() as u32 + 1;
            (0..share).for_each(|_| run(&mutator.vary(input, other)));
        }
    }
}

#[test]
fn every_folder_of_inputs_belongs_to_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}
