//! The relay's certificate and key: from the operator's files, or generated at the first start and
//! kept.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::options::Certificate;
use crate::error::StartError;

/// Name of the file with key and certificate in the relay's folder.
const FILE_NAME: &str = "relay.pem";
/// Largest file accepted; a certificate chain has a few kilobytes.
const FILE_MAX: u64 = 1 << 20;
/// Characters per line of PEM (RFC 7468 §2).
const PEM_LINE: usize = 64;
/// Common name of a self-signed certificate. No client checks it, and it does not identify a relay.
const COMMON_NAME: &str = "localhost";
/// Validity of a self-signed certificate: ten years, a usual choice. Clients check the key only.
const VALIDITY: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// A certificate chain and its key.
pub type CertificateAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Loads `certificate`. A missing self-signed one is generated.
pub fn load(certificate: &Certificate) -> Result<CertificateAndKey, StartError> {
    match certificate {
        Certificate::Files { chain, key } => read(chain, key),
        Certificate::SelfSigned { folder } => {
            let path = folder.join(FILE_NAME);
            match make(folder, &path) {
                Ok(()) => read(&path, &path),
                Err(error) => Err(failed(&path, error)),
            }
        }
    }
}

fn failed(path: &Path, why: impl std::fmt::Display) -> StartError {
    StartError::Certificate { path: PathBuf::from(path), why: why.to_string() }
}

fn read(chain_path: &Path, key_path: &Path) -> Result<CertificateAndKey, StartError> {
    let bytes = read_file(chain_path).map_err(|error| failed(chain_path, error))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| failed(chain_path, error))?;
    if chain.is_empty() {
        return Err(failed(chain_path, "there is no certificate in it"));
    }
    let bytes = read_file(key_path).map_err(|error| failed(key_path, error))?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| failed(key_path, error))?;
    Ok((chain, key))
}

fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    if fs::metadata(path)?.len() > FILE_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "too large for a certificate"));
    }
    fs::read(path).map(Zeroizing::new)
}

/// Writes a new key and certificate to `path`, readable by this user only, unless the file exists.
fn make(folder: &Path, path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let text = self_signed().map_err(io::Error::other)?;
    // Written to a temporary file and renamed, so that `path` is always complete.
    let part = folder.join(format!("{FILE_NAME}.part"));
    let _ = fs::remove_file(&part);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)
}

fn self_signed() -> Result<Zeroizing<String>, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![COMMON_NAME.to_owned()])?;
    // The dates that `openssl req -x509 -days 3650` would write. No client checks them.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(since_1970.as_secs());
    params.not_after = params.not_before + VALIDITY;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
    let certificate = params.self_signed(&key)?;
    let secret = Zeroizing::new(key.serialize_der());
    let mut text = Zeroizing::new(String::new());
    pem(&mut text, "PRIVATE KEY", &secret);
    pem(&mut text, "CERTIFICATE", certificate.der());
    Ok(text)
}

fn pem(text: &mut String, label: &str, der: &[u8]) {
    let encoded = Zeroizing::new(BASE64.encode(der));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    for line in encoded.as_bytes().chunks(PEM_LINE) {
        text.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
}
