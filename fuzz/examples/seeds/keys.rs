//! Key files, one of each kind that has a format, the same in each run. The RSA key is read from a
//! file, as RSA keys are not derived from seeds.

use wraith_suite::encoding::pem;
use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wraith_suite::{kem, sign};

use super::save;

/// A PKCS #1 private key of 2048 bits that has never signed anything.
const RSA: &[u8] = include_bytes!("rsa_2048.der");

/// A SEQUENCE of values of the common types: INTEGER twice, NULL, OBJECT IDENTIFIER, BIT STRING,
/// NULL, `[3]`, and a SEQUENCE of an OCTET STRING that contains another one.
const VALUES: &[u8] =
    b"0\x27\x02\x03\0\x80\x01\x02\x01\0\x05\0\x06\x03\x2a\x86\x48\x03\x05\0bits\x05\0\x83\x05three0\x06\x04\x04\x04\x02\x05\0";

pub(crate) fn save_all() -> std::io::Result<()> {
    let (mut private, public): (Vec<_>, Vec<_>) = signing().chain(encapsulating()).unzip();
    let ed25519 = PrivateKeyInfo::from_der(&private[0]).expect("it was written here");
    let raw = SubjectPublicKeyInfo::from_der(&public[0]).expect("it was written here").key;
    let both = PrivateKeyInfo { public_key: Some(raw), ..ed25519 }.to_der().to_vec();
    let texts = [
        pem::encode(PrivateKeyInfo::PEM_LABEL, &both),
        pem::encode(SubjectPublicKeyInfo::PEM_LABEL, &public[0]),
    ];
    let texts = texts.map(|text| text.as_bytes().to_vec());
    let other_ends = texts[0].iter().flat_map(|&byte| match byte {
        b'\n' => vec![b'\r', b'\n'],
        byte => vec![byte],
    });
    let other_ends = other_ends.collect();
    private.push(both);
    let [first, second] = texts;
    save("pem", &[first, second, other_ends])?;
    save("der", &[VALUES.to_vec(), private[0].clone(), public[2].clone()])?;
    save("pkcs8", &private)?;
    save("spki", &public)
}

/// Private and public keys of the signature algorithms, one algorithm for each kind of key.
fn signing() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    use sign::Algorithm::*;
    let seeds: [(sign::Algorithm, usize); 13] = [
        (Ed25519, 32),
        (Ed448, 57),
        (EcdsaP224, 28),
        (EcdsaP256, 32),
        (EcdsaP384, 48),
        (EcdsaP521, 66),
        (EcdsaBrainpoolP256r1, 32),
        (EcdsaBrainpoolP384r1, 48),
        (EcdsaBrainpoolP512r1, 64),
        (Sm2, 32),
        (MlDsa44, 32),
        (MlDsa87, 32),
        (SlhDsaShake128f, 64),
    ];
    let keys = seeds.map(|(algorithm, len)| {
        let mut raw = vec![7; len];
        // Keeps the number below the order of P-521.
        raw[0] = 0;
        algorithm.signing_key(&raw).expect("a seed, or a number below the order")
    });
    let rsa = RsaPssSha256.signing_key(RSA).expect("it is in the file");
    keys.into_iter()
        .chain([rsa])
        .map(|key| (key.to_pkcs8().to_vec(), key.verifying_key().to_spki()))
}

fn encapsulating() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    use kem::Algorithm::*;
    [(MlKem512, 64), (MlKem768, 64), (MlKem1024, 64), (XWing, 32)].into_iter().map(
        |(algorithm, len)| {
            let key = algorithm.decapsulation_key(&vec![7; len]).expect("its length is right");
            let private = key.to_pkcs8().expect("it has a format");
            (private.to_vec(), key.encapsulation_key().to_spki().expect("as the other half"))
        },
    )
}
