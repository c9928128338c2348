//! `wraith crypto list`.

use wraith_suite::{aead, agree, cipher, encrypt, hash, kem, mac, sign};

use super::args::{Kind, ListArgs};
use super::names::AlgorithmNames;
use crate::failure::Failure;
use crate::report::{Event, Reporter};

/// Minimum width of a name in columns; the longest has 22.
const NAME_WIDTH: usize = 23;

pub fn run(args: &ListArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let kind = args.kind;
    list_algorithms::<hash::Algorithm>(kind, reporter);
    list_algorithms::<cipher::Algorithm>(kind, reporter);
    list_algorithms::<aead::Algorithm>(kind, reporter);
    list_algorithms::<mac::Algorithm>(kind, reporter);
    list_algorithms::<sign::Algorithm>(kind, reporter);
    list_algorithms::<agree::Algorithm>(kind, reporter);
    list_algorithms::<kem::Algorithm>(kind, reporter);
    list_algorithms::<encrypt::Algorithm>(kind, reporter);
    Ok(())
}

fn list_algorithms<A: AlgorithmNames>(wanted: Option<Kind>, reporter: &dyn Reporter) {
    if wanted.is_some_and(|kind| kind != A::KIND) {
        return;
    }
    for each in A::EVERY {
        let (name, standard) = (each.title(), each.defined_by());
        let backend = each.computed_by().to_string();
        let kind = A::KIND.name();
        reporter.event(&Event::Algorithm { kind, name, standard, backend: &backend });
        let line = format!("{kind:8}{name:NAME_WIDTH$}{standard:40} {backend}");
        reporter.print(line.as_bytes());
    }
}
