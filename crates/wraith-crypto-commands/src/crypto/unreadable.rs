//! Explains files without the expected key: the actual content, and the command that converts it.

use std::path::Path;

use wraith_files::shown;
use wraith_suite::encoding::der::Decode as _;
use wraith_suite::encoding::der::asn1::ObjectIdentifier;
use wraith_suite::encoding::oid;
use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::encoding::sec1::EcPrivateKey;
use wraith_suite::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use wraith_suite::sign;

use super::input::name;
use crate::failure::{Exit, Failure};

/// Maximum number of shown characters of a foreign PEM label.
const LABEL_SHOWN_MAX: usize = 40;
/// Command that converts an older private key format to PKCS #8.
const AS_PKCS8: &str = "to convert it to PKCS #8: openssl pkcs8 -topk8 -nocrypt -in FILE -out NEW";
/// The same for a key that is encrypted as in RFC 1421; openssl asks for the passphrase.
const WITHOUT_PASSPHRASE: &str = "to remove the passphrase and convert it to PKCS #8: openssl pkcs8 -topk8 -nocrypt -in FILE -out NEW";
/// Labels of other PEM blocks with keys, and the command that converts each into a supported one.
const OTHER_BLOCKS: [(&str, &str); 8] = [
    ("PRIVATE KEY", "to get its public half: wraith crypto pub FILE"),
    ("PUBLIC KEY", "the private key is in the file written by wraith crypto genkey"),
    ("ENCRYPTED PRIVATE KEY", "to remove the passphrase: openssl pkcs8 -in FILE -out NEW"),
    ("RSA PRIVATE KEY", AS_PKCS8),
    ("EC PRIVATE KEY", AS_PKCS8),
    ("EC PARAMETERS", AS_PKCS8),
    (
        "RSA PUBLIC KEY",
        "to convert it to SubjectPublicKeyInfo: openssl rsa -RSAPublicKey_in -pubout -in FILE -out NEW",
    ),
    ("CERTIFICATE", "to get its public key: openssl x509 -pubkey -noout -in FILE -out NEW"),
];

/// Object identifiers of keys that are not accepted, each with a description and advice.
const OTHER_KEYS: [(ObjectIdentifier, &str, &str); 4] = [
    (
        oid::RSA,
        "an unsupported RSA key",
        "RSA keys need 2048 to 4096 bits, a multiple of 8, and numbers that match",
    ),
    (
        RSASSA_PSS,
        "a key for RSA-PSS alone",
        "use a general RSA key: openssl genpkey -algorithm RSA, or wraith crypto genkey RSA-PSS-SHA-256",
    ),
    (X25519, "a key of X25519, which is for key agreement", AGREEMENT),
    (X448, "a key of X448, which is for key agreement", AGREEMENT),
];
/// id-RSASSA-PSS (RFC 4055).
const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
/// RFC 8410.
const X25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.110");
const X448: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.111");
const AGREEMENT: &str =
    "no command uses such a key; to encrypt for a recipient: wraith crypto genkey X-Wing";

/// The supported curves.
const CURVES: [ObjectIdentifier; 8] = [
    oid::P224,
    oid::P256,
    oid::P384,
    oid::P521,
    oid::BRAINPOOL_P256R1,
    oid::BRAINPOOL_P384R1,
    oid::BRAINPOOL_P512R1,
    oid::SM2,
];
/// Commands that convert a key of a supported curve to a supported encoding.
const EC_PRIVATE: &str =
    "openssl pkey -ec_param_enc named_curve -ec_conv_form uncompressed -in FILE -out NEW";
const EC_PUBLIC: &str =
    "openssl pkey -pubin -ec_param_enc named_curve -ec_conv_form uncompressed -in FILE -out NEW";

/// Explains a file that is no text.
pub fn binary(path: &Path, bytes: &[u8]) -> Failure {
    let failure = no_key(path, "no key: neither hexadecimal nor PEM");
    match bytes {
        [0x30, ..] => failure.hint(
            "to convert DER to PEM: openssl pkey -inform DER -in FILE -out NEW (with -pubin for a public key)",
        ),
        _ if matches!(bytes.len(), 16 | 24 | 32 | 64) => {
            failure.hint("to convert a raw key to hexadecimal: xxd -p -c 0 FILE")
        }
        _ => failure,
    }
}

/// Explains a text without the `wanted` PEM key; `error` is the decoder's message.
pub fn block(path: &Path, text: &str, label: &str, wanted: &str, error: &str) -> Failure {
    if text.trim().is_empty() {
        return no_key(path, &format!("no {wanted}: it is empty"));
    }
    let Some(rest) = text.strip_prefix("-----BEGIN ") else {
        let is_hex =
            text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace());
        let failure = no_key(path, &format!("no {wanted}: {error}"));
        return match is_hex {
            true => failure.hint(
                "a key in hexadecimal is a shared secret: use it with enc -k FILE or mac -k FILE",
            ),
            false => failure,
        };
    };
    let found = rest.split_once("-----").map_or("", |(found, _)| found);
    if found == label || found.is_empty() {
        return no_key(path, &format!("no {wanted}: {error}"))
            .hint("the file must be one complete block, with nothing before or after it");
    }
    let cut: String = found.chars().take(LABEL_SHOWN_MAX).collect();
    let cut = shown(cut.as_bytes());
    if text.contains("\nProc-Type: 4,ENCRYPTED") {
        let what = format!("no supported {wanted}, but an encrypted '{cut}'");
        return no_key(path, &what).hint(WITHOUT_PASSPHRASE);
    }
    let failure = no_key(path, &format!("no supported {wanted}, but '{cut}'"));
    if found == "CERTIFICATE" && label == PrivateKeyInfo::PEM_LABEL {
        return failure
            .hint("a certificate contains no private key; use the key file that belongs to it");
    }
    match OTHER_BLOCKS.iter().find(|(other, _)| *other == found) {
        Some((_, instead)) => failure.hint(*instead),
        None => failure,
    }
}

/// Explains a private key (PKCS #8) of an unexpected or unknown algorithm.
pub fn private(path: &Path, der: &[u8], algorithm: Option<sign::Algorithm>) -> Failure {
    let is_of = |each: &sign::Algorithm| each.signing_key_pkcs8(der).is_ok();
    another(path, algorithm, is_of).unwrap_or_else(|| {
        let info = PrivateKeyInfo::from_der(der).ok();
        if let Some(info) = info.filter(|info| info.algorithm.oid == oid::EC_PUBLIC_KEY) {
            let inside = EcPrivateKey::from_der(info.private_key).ok();
            let point = info.public_key.or(inside.and_then(|key| key.point));
            return of_a_curve(path, &info.algorithm, point, EC_PRIVATE);
        }
        unknown(path, info.map(|info| info.algorithm), "a private key")
    })
}

/// Explains a public key (SubjectPublicKeyInfo) of an unexpected or unknown algorithm.
pub fn public(path: &Path, der: &[u8], algorithm: Option<sign::Algorithm>) -> Failure {
    let is_of = |each: &sign::Algorithm| each.verifying_key_spki(der).is_ok();
    another(path, algorithm, is_of).unwrap_or_else(|| {
        let info = SubjectPublicKeyInfo::from_der(der).ok();
        if let Some(info) = info.filter(|info| info.algorithm.oid == oid::EC_PUBLIC_KEY) {
            return of_a_curve(path, &info.algorithm, Some(info.key), EC_PUBLIC);
        }
        unknown(path, info.map(|info| info.algorithm), "a public key")
    })
}

/// Explains a key whose algorithm cannot do `kind`.
pub fn other_use(path: &Path, algorithm: &str, what: &str, kind: &str) -> Failure {
    let message = format!("{} contains a key of {algorithm}, which {what}", name(path));
    Failure::new(Exit::Usage, message)
        .hint(format!("wraith crypto list {kind} lists suitable algorithms"))
}

pub fn no_key(path: &Path, what: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{} contains {what}", name(path)))
        .hint("wraith crypto genkey makes keys; wraith crypto pub writes their public halves")
}

/// Explains a key of another algorithm than the wanted one, if there is one.
fn another(
    path: &Path,
    wanted: Option<sign::Algorithm>,
    is_of: impl Fn(&sign::Algorithm) -> bool,
) -> Option<Failure> {
    let wanted = wanted?;
    let found = sign::Algorithm::ALL.iter().find(|each| is_of(each))?;
    let message = format!("{} contains a key of {found}, not of {wanted}", name(path));
    Some(Failure::new(Exit::Usage, message).hint("leave -a out, or use a matching key"))
}

/// Explains an unreadable elliptic-curve key with its `point`. `convert` is the command that
/// changes its encoding to a supported one.
fn of_a_curve(
    path: &Path,
    algorithm: &AlgorithmIdentifier<'_>,
    point: Option<&[u8]>,
    convert: &str,
) -> Failure {
    let is_here = CURVES.iter().any(|curve| *algorithm == AlgorithmIdentifier::of_curve(curve));
    let curve = algorithm.parameters.map(|curve| curve.decode_as::<ObjectIdentifier>());
    let is_named = curve.is_some_and(|curve| curve.is_ok());
    let (what, next) = match (is_here, is_named, point) {
        (true, _, Some([2 | 3, ..])) => (
            "a key with a compressed point, which is not supported",
            format!("to expand the point: {convert}"),
        ),
        (true, ..) => (
            "a key of a supported curve with invalid numbers",
            "the file is damaged; get it again from its owner".to_owned(),
        ),
        (false, true, _) => (
            "a key of an unsupported curve",
            "wraith crypto list sign lists the supported algorithms".to_owned(),
        ),
        (false, false, _) => (
            "a key whose curve is given by parameters, not by name",
            format!("to convert it to a named curve, if it is one: {convert}"),
        ),
    };
    Failure::new(Exit::Usage, format!("{} contains {what}", name(path))).hint(next)
}

fn unknown(path: &Path, algorithm: Option<AlgorithmIdentifier<'_>>, wanted: &str) -> Failure {
    let oid = algorithm.map(|algorithm| algorithm.oid);
    match OTHER_KEYS.iter().find(|(each, ..)| Some(*each) == oid) {
        Some((_, what, next)) => {
            Failure::new(Exit::Usage, format!("{} contains {what}", name(path))).hint(*next)
        }
        None => {
            let message =
                format!("{} does not contain {wanted} of a supported algorithm", name(path));
            Failure::new(Exit::Usage, message).hint("wraith crypto list lists the algorithms")
        }
    }
}
