//! TLS 1.3 configuration of both ends.
//!
//! A relay is recognised by its key, not by a certificate authority. Its *pin* is the SHA-256 of
//! the SubjectPublicKeyInfo, which survives a certificate renewal with the same key. A client
//! without a pin accepts any key and reports its pin.
//!
//! To an on-path observer this is TLS to a web server. The client offers `h2` and `http/1.1` and
//! sends the host name as usual, and the certificate is encrypted. An active prober finds a web
//! server without pages.

use std::io;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, ServerConfig,
    SignatureScheme,
};
use wraith_crypto::equal;
use wraith_crypto::hash::Sha256;

use wraith_discovery::PIN_LEN as PIN_BYTES;

/// Identifies the key of a relay's certificate.
pub type Pin = [u8; PIN_BYTES];

/// The relay's key differs from the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the relay has another key than expected ({} instead of {}): it was set up again, or an attacker intercepts the connection",
    HEXLOWER.encode(&.found[..8]),
    HEXLOWER.encode(&.expected[..8])
)]
pub struct PinMismatch {
    /// The pinned key.
    pub expected: Pin,
    /// The relay's actual key.
    pub found: Pin,
}

/// Returns the pin of a certificate.
///
/// # Errors
/// It is not an X.509 certificate.
pub fn pin_of(certificate: &CertificateDer<'_>) -> Result<Pin, Error> {
    Ok(Sha256::digest(&ParsedCertificate::try_from(certificate)?.subject_public_key_info()))
}

/// Creates the TLS configuration of a relay.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Resumption is off: every handshake must produce a new exporter.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// Creates the TLS configuration of a client. With `pin` only that key is accepted, otherwise any.
pub fn client_config(pin: Option<Pin>) -> Result<ClientConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(PinVerifier { pin, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Verifies only the pinned key. Names, dates and signers do not identify a relay.
#[derive(Debug)]
struct PinVerifier {
    pin: Option<Pin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = pin_of(end_entity)?;
        match self.pin {
            Some(pin) if !equal(&pin, &found) => {
                let mismatch = OtherError(Arc::new(PinMismatch { expected: pin, found }));
                Err(CertificateError::Other(mismatch).into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the pin mismatch if that caused the handshake error.
pub fn pin_mismatch(error: &io::Error) -> Option<PinMismatch> {
    match error.get_ref()?.downcast_ref()? {
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.downcast_ref::<PinMismatch>().copied()
        }
        _ => None,
    }
}
