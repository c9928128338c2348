//! Looks up algorithms by name, and suggests similar names for an unknown one.

use std::str::FromStr;

use wraith_files::shown;
use wraith_suite::{Backend, NAME_MAX, UnknownAlgorithm};
use wraith_suite::{aead, agree, cipher, encrypt, hash, kem, mac, sign};

use super::args::Kind;
use crate::failure::{Exit, Failure};

/// Maximum number of suggestions.
const PROPOSED_MAX: usize = 3;

/// The algorithms of one kind, as an enum.
pub trait AlgorithmNames: Copy + FromStr<Err = UnknownAlgorithm> + 'static {
    const KIND: Kind;
    const EVERY: &'static [Self];
    fn title(self) -> &'static str;
    fn defined_by(self) -> &'static str;
    fn computed_by(self) -> Backend;
}

macro_rules! named {
    ($($module:ident = $kind:ident;)+) => {
        $(
            impl AlgorithmNames for $module::Algorithm {
                const KIND: Kind = Kind::$kind;
                const EVERY: &'static [Self] = Self::ALL;
                fn title(self) -> &'static str { self.name() }
                fn defined_by(self) -> &'static str { self.standard() }
                fn computed_by(self) -> Backend { self.backend() }
            }
        )+
    };
}

named! {
    hash = Hash;
    cipher = Cipher;
    aead = Aead;
    mac = Mac;
    sign = Sign;
    agree = Agree;
    kem = Kem;
    encrypt = Encrypt;
}

/// Returns the algorithm of this kind with the name.
pub fn named<A: AlgorithmNames>(name: &str) -> Result<A, Failure> {
    name.parse::<A>().map_err(|unknown| {
        let all = A::EVERY.iter().map(|each| each.title());
        let near = nearest(name, all);
        not_there(&unknown.to_string(), &near, Some(A::KIND))
    })
}

/// Returns the failure for an unknown name: `what` describes the mistake, `near` lists similar
/// names.
pub fn not_there(what: &str, near: &[&str], kind: Option<Kind>) -> Failure {
    let list = match kind {
        Some(kind) => format!("wraith crypto list {} lists the names", kind.name()),
        None => "wraith crypto list lists the names".to_owned(),
    };
    let hint = match near {
        [] => list,
        near => format!("did you mean {}? {list}", near.join(", ")),
    };
    Failure::new(Exit::Usage, shown(what.as_bytes()).to_string()).hint(hint)
}

/// Returns the known names of which `name` is a typo or a part, the most similar first.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = letters(name);
    let mut rated: Vec<(usize, &str)> = all
        .filter_map(|each| {
            let known = letters(each);
            let distance = strsim::osa_distance(&known, &wanted);
            let is_part = wanted.len() >= 3 && (known.contains(&wanted) || wanted.contains(&known));
            (is_part || distance <= (wanted.len() / 4).max(1)).then_some((distance, each))
        })
        .collect();
    rated.sort_by_key(|(distance, _)| *distance);
    rated.into_iter().take(PROPOSED_MAX).map(|(_, each)| each).collect()
}

/// Returns the significant characters of a name.
fn letters(name: &str) -> String {
    let kept = name.chars().take(NAME_MAX).filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(name: &str) -> Vec<&'static str> {
        nearest(name, aead::Algorithm::ALL.iter().map(|each| each.name()))
    }

    #[test]
    fn slips_and_parts_of_names_are_understood() {
        assert_eq!(proposed("aes-256-gmc")[0], "AES-256-GCM");
        assert_eq!(proposed("chacha20")[0], "ChaCha20-Poly1305");
        assert!(proposed("frobnicate").is_empty());
        assert!(proposed(&"x".repeat(1 << 20)).is_empty());
    }

    #[test]
    fn an_unknown_name_is_reported_with_similar_names() {
        let failure = named::<hash::Algorithm>("sha265\x1b").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(!failure.message.contains('\x1b'), "{}", failure.message);
        assert!(failure.hint.unwrap().starts_with("did you mean SHA-256"));
    }
}
