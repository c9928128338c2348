//! A censor's published rules applied to first payloads (Wu and others, USENIX Security 2023):
//! fully encrypted TCP connections were blocked unless their first payload matched an exemption.
//!
//! This is a report and not a test: random payloads are exempt only by chance, for any protocol.
//! The rules were observed on TCP. Datagrams of random bytes are not exempt from such rules, and a
//! TCP carrier of wraith must not begin with them.

/// Average ones in a byte between which a payload looks encrypted.
const ONES_PER_BYTE: std::ops::Range<f64> = 3.4..4.6;
/// Printable bytes at the beginning that count as text.
const PRINTABLE_PREFIX: usize = 6;
/// A longer run of printable bytes counts as text.
const PRINTABLE_RUN: usize = 20;

/// Name of a rule, and whether it exempts a payload.
pub type Rule = (&'static str, fn(&[u8]) -> bool);

/// The rules, in the paper's order.
pub const RULES: [Rule; 5] = [
    ("Ex1: ones and zeros unequal", |payload| {
        let ones: u32 = payload.iter().map(|byte| byte.count_ones()).sum();
        let per_byte = f64::from(ones) / payload.len() as f64;
        per_byte <= ONES_PER_BYTE.start || per_byte >= ONES_PER_BYTE.end
    }),
    ("Ex2: begins with printable bytes", |payload| {
        payload.len() >= PRINTABLE_PREFIX && payload[..PRINTABLE_PREFIX].iter().all(printable)
    }),
    ("Ex3: more than half printable", |payload| {
        2 * payload.iter().filter(|byte| printable(byte)).count() > payload.len()
    }),
    ("Ex4: a long run of printable bytes", |payload| {
        payload.split(|byte| !printable(byte)).any(|run| run.len() > PRINTABLE_RUN)
    }),
    ("Ex5: like TLS or HTTP", |payload| {
        let methods: [&[u8]; 8] =
            [b"GET ", b"PUT ", b"POST ", b"HEAD ", b"TRACE ", b"DELETE ", b"CONNECT ", b"OPTIONS "];
        let tls = matches!(payload, [0x16 | 0x17, 3, 0..=9, ..]);
        tls || methods.iter().any(|method| payload.starts_with(method))
    }),
];

/// Returns the share of payloads that each rule exempts, and the share that at least one exempts.
pub fn exempt(payloads: &[Vec<u8>]) -> ([f64; RULES.len()], f64) {
    let share = |rule: &dyn Fn(&[u8]) -> bool| {
        payloads.iter().filter(|payload| rule(payload)).count() as f64 / payloads.len() as f64
    };
    let any = |payload: &[u8]| RULES.iter().any(|(_, rule)| rule(payload));
    (RULES.map(|(_, rule)| share(&rule)), share(&any))
}

fn printable(byte: &u8) -> bool {
    (0x20..=0x7e).contains(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_exempts_its_own_subject() {
        let noise: Vec<u8> =
            (0..200_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let with = |prefix: &[u8]| [prefix, &noise].concat();
        let exempting = |payload: &[u8]| -> Vec<usize> {
            (0..RULES.len()).filter(|rule| RULES[*rule].1(payload)).collect()
        };
        assert_eq!(exempting(&noise), [0; 0]);
        assert_eq!(exempting(&[0; 200]), [0]);
        assert_eq!(exempting(&with(b"abcdef")), [1]);
        assert!(exempting(&[b'U'; 200]).contains(&2));
        assert_eq!(exempting(&with(&[&[0xff][..], &[b'U'; 21]].concat())), [3]);
        assert_eq!(exempting(&with(&[0x16, 3, 1])), [4]);
        assert_eq!(exempting(&with(b"GET ")), [4]);
    }
}
