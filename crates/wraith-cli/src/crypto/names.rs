//! Algorithms by the names that people type; one that is none is answered with what was probably meant.

use std::str::FromStr;

use wraith_crypto::{Backend, NAME_MAX, UnknownAlgorithm};
use wraith_crypto::{aead, agree, cipher, encrypt, hash, kem, mac, sign};
use wraith_files::shown;

use crate::args::crypto::Kind;
use crate::failure::{Exit, Failure};

/// So many names are proposed for a wrong one.
const PROPOSED_MAX: usize = 3;

/// The enum of a kind's algorithms.
pub trait Named: Copy + FromStr<Err = UnknownAlgorithm> + 'static {
    const KIND: Kind;
    const EVERY: &'static [Self];
    fn title(self) -> &'static str;
    fn defined_by(self) -> &'static str;
    fn computed_by(self) -> Backend;
}

macro_rules! named {
    ($($module:ident = $kind:ident;)+) => {
        $(
            impl Named for $module::Algorithm {
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

/// The algorithm of this kind with the name.
pub fn named<A: Named>(name: &str) -> Result<A, Failure> {
    name.parse::<A>().map_err(|unknown| {
        let all = A::EVERY.iter().map(|each| each.title());
        let near = nearest(name, all);
        not_there(&unknown.to_string(), &near, Some(A::KIND))
    })
}

/// What to say of a name that is none: `what` it is, and the names that are like it.
pub fn not_there(what: &str, near: &[&str], kind: Option<Kind>) -> Failure {
    let list = match kind {
        Some(kind) => format!("wraith crypto list {} has their names", kind.name()),
        None => "wraith crypto list has their names".to_owned(),
    };
    let hint = match near {
        [] => list,
        near => format!("did you mean {}? {list}", near.join(", ")),
    };
    Failure::new(Exit::Usage, shown(what.as_bytes()).to_string()).hint(hint)
}

/// The names that `name` is a slip or a part of, the likeliest first.
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

/// What counts of a name.
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
    fn an_unknown_name_is_told_with_what_is_like_it() {
        let failure = named::<hash::Algorithm>("sha265\x1b").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(!failure.message.contains('\x1b'), "{}", failure.message);
        assert!(failure.hint.unwrap().starts_with("did you mean SHA-256"));
    }
}
