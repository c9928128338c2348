//! TLS without lookups and without secrets: the server presents a fixed Ed25519 key as a raw public
//! key (RFC 7250), and the client accepts only that key. Packets are sealed with AES-256-GCM, as
//! wraith's are.

use std::sync::Arc;

use anyhow::Result;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};

/// An arbitrary name: only the key is checked.
pub const SERVER_NAME: &str = "peer";
/// An Ed25519 private key in PKCS #8 (RFC 8410) up to the 32 bytes of the key.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// Public, as a benchmark has no secrets.
const SERVER_SEED: [u8; 32] = [2; 32];

/// Configuration of the side that proves the key.
pub fn server() -> Result<QuicServerConfig> {
    let provider = provider();
    let key = server_key(&provider)?;
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    Ok(config.try_into()?)
}

/// Configuration of the side that checks the key.
pub fn client() -> Result<QuicClientConfig> {
    let provider = provider();
    let key = server_key(&provider)?;
    let verifier =
        PinnedKey { key: key.cert[0].as_ref().to_vec(), provider: Arc::clone(&provider) };
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config.try_into()?)
}

/// AES-256-GCM first; QUIC itself needs AES-128-GCM for its first packets.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![
        aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
    ];
    Arc::new(CryptoProvider { cipher_suites, ..aws_lc_rs::default_provider() })
}

fn server_key(provider: &CryptoProvider) -> Result<Arc<CertifiedKey>> {
    let document = [PKCS8_PREFIX.as_slice(), &SERVER_SEED].concat();
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(document));
    let signing = provider.key_provider.load_private_key(private)?;
    let public =
        signing.public_key().ok_or(Error::InconsistentKeys(rustls::InconsistentKeys::Unknown))?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], signing)))
}

/// Accepts one public key.
#[derive(Debug)]
struct PinnedKey {
    key: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if presented.as_ref() == self.key {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // QUIC is TLS 1.3 only.
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(key.as_ref()),
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
