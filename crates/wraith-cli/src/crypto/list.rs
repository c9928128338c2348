//! `wraith crypto list`.

use wraith_crypto::{aead, agree, cipher, encrypt, hash, kem, mac, sign};

use super::names::Named;
use crate::args::crypto::{Kind, ListArgs};
use crate::failure::Failure;
use crate::output::{Event, Reporter};

/// Minimum width of a name in columns; the longest has 22.
const NAME_WIDTH: usize = 23;

pub fn run(args: &ListArgs, reporter: &Reporter) -> Result<(), Failure> {
    let kind = args.kind;
    tell::<hash::Algorithm>(kind, reporter);
    tell::<cipher::Algorithm>(kind, reporter);
    tell::<aead::Algorithm>(kind, reporter);
    tell::<mac::Algorithm>(kind, reporter);
    tell::<sign::Algorithm>(kind, reporter);
    tell::<agree::Algorithm>(kind, reporter);
    tell::<kem::Algorithm>(kind, reporter);
    tell::<encrypt::Algorithm>(kind, reporter);
    Ok(())
}

fn tell<A: Named>(wanted: Option<Kind>, reporter: &Reporter) {
    if wanted.is_some_and(|kind| kind != A::KIND) {
        return;
    }
    for each in A::EVERY {
        let (name, standard) = (each.title(), each.defined_by());
        let backend = each.computed_by().to_string();
        let kind = A::KIND.name();
        reporter.event(&Event::Algorithm { kind, name, standard, backend: &backend });
        reporter.answer(format!("{kind:8}{name:NAME_WIDTH$}{standard:40} {backend}"));
    }
}
