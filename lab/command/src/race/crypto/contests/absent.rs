//! Rows of the others that are not raced because the suite lacks the algorithm, with the reasons.

use std::fmt::Write;

/// Rows of the C program and of openhitls-rs, one per line.
const C: &str = include_str!("rows-c.txt");
const RS: &str = include_str!("rows-rs.txt");

/// An algorithm that the suite lacks.
struct Absent {
    what: &'static str,
    why: &'static str,
    /// Prefixes of its rows in the C program, and in openhitls-rs.
    c: &'static [&'static str],
    rs: &'static [&'static str],
}

const ABSENT: [Absent; 14] = [
    Absent {
        what: "SM9",
        why: "it is identity-based: the key generator can read and sign everything",
        c: &["sm9 "],
        rs: &["sm9/"],
    },
    Absent {
        what: "P-192",
        why: "it has less than 112 bits of security",
        c: &["nistp192"],
        rs: &[],
    },
    Absent {
        what: "groups of 768, 1024 and 1536 bits",
        why: "they have less than 112 bits of security",
        c: &["dh-rfc2409-", "dh-rfc3526-1536 "],
        rs: &[],
    },
    Absent {
        what: "DSA",
        why: "FIPS 186-5 withdraws it; openhitls-rs measures it with p = 23",
        c: &[],
        rs: &["dsa/"],
    },
    Absent {
        what: "ElGamal",
        why: "no standard has it; openhitls-rs measures it with p = 23",
        c: &[],
        rs: &["elgamal/"],
    },
    Absent {
        what: "Paillier",
        why: "nothing here computes with what is encrypted",
        c: &[],
        rs: &["paillier/"],
    },
    Absent {
        what: "XMSS and XMSS^MT",
        why: "a key that is restored from a copy signs twice with one part and is broken; SLH-DSA keeps no state",
        c: &["xmss"],
        rs: &["xmss/", "xmss-mt/"],
    },
    Absent {
        what: "Classic McEliece",
        why: "its public keys have a megabyte, and it is no standard of NIST",
        c: &["mceliece-"],
        rs: &["mceliece/"],
    },
    Absent {
        what: "FrodoKEM",
        why: "it is no standard of NIST, as ML-KEM is",
        c: &["frodokem-", "efrodokem-"],
        rs: &["frodokem/"],
    },
    Absent {
        what: "hybrids of P-256 or P-384 with ML-KEM",
        why: "X25519MLKEM768 and X-Wing are the hybrids here",
        c: &[],
        rs: &["hybridkem/p256-", "hybridkem/p384-"],
    },
    Absent { what: "HCTR", why: "XTS is the mode for disks here", c: &[], rs: &["aes-hctr/"] },
    Absent {
        what: "Poly1305 alone",
        why: "it is only within its AEADs, since a key must not be used twice",
        c: &[],
        rs: &["poly1305/"],
    },
    Absent {
        what: "SHA-256 of four texts at once",
        why: "a hash function takes one text here; that is raced",
        c: &[],
        rs: &["sha256-mb/"],
    },
    Absent {
        what: "CTR_DRBG with SM4",
        why: "CTR_DRBG has AES-256 here",
        c: &[],
        rs: &["drbg-extra/sm4-ctr-drbg/"],
    },
];

fn rows(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty())
}

/// Returns the rows of `text` with one of these prefixes. Rows that differ only after the last
/// `mark` are merged.
fn shortened(text: &'static str, begins: &[&str], mark: char) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows(text).filter(|row| begins.iter().any(|begin| row.starts_with(begin))) {
        let (head, last) = row.rsplit_once(mark).unwrap_or((row, ""));
        match groups.iter_mut().find(|(other, _)| *other == head) {
            Some((_, all)) => all.push(last),
            None => groups.push((head, vec![last])),
        }
    }
    let group = |(head, all): (&str, Vec<&str>)| format!("{head}{mark}{}", all.join(", "));
    groups.into_iter().map(group).collect::<Vec<_>>().join("; ")
}

/// Formats the absent rows as a Markdown table.
pub fn table(c: &str, rs: &str) -> String {
    let mut out =
        format!("| not in the suite | because | rows of {c} | rows of {rs} |\n|---|---|---|---|\n");
    for absent in &ABSENT {
        let (at_c, at_rs) = (shortened(C, absent.c, ' '), shortened(RS, absent.rs, '/'));
        let _ = writeln!(out, "| {} | {} | {at_c} | {at_rs} |", absent.what, absent.why);
    }
    out
}

#[cfg(test)]
pub use held::*;

/// Queries for the test of the whole list.
#[cfg(test)]
mod held {
    use super::*;

    pub fn rows_of_c() -> impl Iterator<Item = &'static str> {
        rows(C)
    }

    pub fn rows_of_rs() -> impl Iterator<Item = &'static str> {
        rows(RS)
    }

    pub fn reasons_for_c(row: &str) -> u8 {
        ABSENT.iter().map(|each| u8::from(each.c.iter().any(|begin| row.starts_with(begin)))).sum()
    }

    pub fn reasons_for_rs(row: &str) -> u8 {
        ABSENT.iter().map(|each| u8::from(each.rs.iter().any(|begin| row.starts_with(begin)))).sum()
    }

    #[test]
    fn every_reason_is_for_a_row_and_the_table_has_them_all() {
        let table = table("C", "Rust");
        for absent in &ABSENT {
            for begin in absent.c {
                assert!(rows(C).any(|row| row.starts_with(begin)), "{begin}");
            }
            for begin in absent.rs {
                assert!(rows(RS).any(|row| row.starts_with(begin)), "{begin}");
            }
            assert!(table.contains(absent.why));
        }
        assert!(
            table.contains(
                "| sm9 encrypt, decrypt, sign, verify | sm9/sign, verify, encrypt, decrypt |"
            ),
            "{table}"
        );
        assert!(table.contains("aes-hctr/aes-128-hctr/encrypt/1024, 8192, 16384; "), "{table}");
    }
}
