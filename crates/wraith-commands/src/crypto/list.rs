//! `wraith crypto list`.

use wraith_crypto::{aead, agree, cipher, encrypt, hash, kem, mac, sign};

use super::names::AlgorithmNames;
use crate::args::crypto::{Kind, ListArgs};
use crate::failure::Failure;
use crate::output::{Event, Reporter};

/// Minimum width of a name in columns; the longest has 22.
const NAME_WIDTH: usize = 23;

pub fn run(args: &ListArgs, reporter: &Reporter) -> Result<(), Failure> {
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

fn list_algorithms<A: AlgorithmNames>(wanted: Option<Kind>, reporter: &Reporter) {
    if wanted.is_some_and(|kind| kind != A::KIND) {
        return;
    }
    for each in A::EVERY {
        let (name, standard) = (each.title(), each.defined_by());
        let backend = each.computed_by().to_string();
        let kind = A::KIND.name();
        reporter.event(&Event::Algorithm { kind, name, standard, backend: &backend });
        reporter.print(format!("{kind:8}{name:NAME_WIDTH$}{standard:40} {backend}"));
    }
}
