//! Vectors of NIST's ACVP for signature verification, through the internal interfaces of FIPS 204
//! and 205, which have no context.

use data_encoding::BASE64;

/// A signature and its expected verdict.
pub struct Verification {
    pub set: &'static str,
    pub id: &'static str,
    pub is_valid: bool,
    pub public: Vec<u8>,
    pub message: Vec<u8>,
    pub signature: Vec<u8>,
    /// The modification of the signature.
    pub why: &'static str,
}

/// Returns the vectors of the sets with names that begin with `sets`.
pub fn verifications(sets: &str) -> impl Iterator<Item = Verification> {
    let bytes = |text: &str| BASE64.decode(text.as_bytes()).unwrap();
    let mut public = Vec::new();
    let lines = include_str!("../vectors/acvp_verify.txt").lines();
    let all = lines.filter_map(move |line| {
        if let Some(key) = line.strip_prefix("key ") {
            public = bytes(key.split_once(' ').unwrap().1);
            return None;
        }
        let mut fields = line.splitn(6, ' ');
        let mut next = || fields.next().unwrap();
        let (set, id, is_valid) = (next(), next(), next() == "valid");
        let (message, signature) = (bytes(next()), bytes(next()));
        Some(Verification {
            set,
            id,
            is_valid,
            public: public.clone(),
            message,
            signature,
            why: next(),
        })
    });
    all.filter(move |vector| vector.set.starts_with(sets))
}

/// Checks that `verify` returns the expected verdicts for these sets. Returns how many signatures
/// were invalid and valid.
pub fn check_verifications(sets: &str, verify: impl Fn(&Verification) -> bool) -> [usize; 2] {
    let mut verdicts = [0, 0];
    for vector in verifications(sets) {
        let Verification { set, id, is_valid, why, .. } = &vector;
        assert_eq!(verify(&vector), *is_valid, "{set} {id}: {why}");
        verdicts[usize::from(*is_valid)] += 1;
    }
    verdicts
}
