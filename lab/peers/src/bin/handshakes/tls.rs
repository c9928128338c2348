//! Handshakes of rustls over AWS-LC: TLS 1.3, only X25519MLKEM768, Ed25519 certificates of one
//! authority on both sides, no resumption.

use std::sync::Arc;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ED25519};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, NamedGroup, RootCertStore, ServerConfig, ServerConnection,
};

const NAME: &str = "bob.example";

pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    pub fn new() -> Result<Self> {
        let mut provider = default_provider();
        provider.kx_groups = vec![kx_group::X25519MLKEM768];
        let provider = Arc::new(provider);
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);
        let mut roots = RootCertStore::empty();
        roots.add(root.der().clone())?;
        let roots = Arc::new(roots);
        let versions = [&rustls::version::TLS13];

        let (certificate, key) = certified("alice.example", &issuer)?;
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(certificate, key)?;
        client.resumption = Resumption::disabled();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let (certificate, key) = certified(NAME, &issuer)?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .with_client_cert_verifier(verifier.build()?)
            .with_single_cert(certificate, key)?;
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// Runs one handshake, until both sides have keys.
    pub fn shake_hands(&self) {
        let name = ServerName::try_from(NAME).expect("a valid name");
        let mut client =
            ClientConnection::new(Arc::clone(&self.client), name).expect("a valid configuration");
        let mut server =
            ServerConnection::new(Arc::clone(&self.server)).expect("a valid configuration");
        let mut wire = Vec::new();
        while client.is_handshaking() || server.is_handshaking() {
            while client.wants_write() {
                client.write_tls(&mut wire).expect("memory takes everything");
            }
            server.read_tls(&mut &wire[..]).expect("memory gives everything");
            server.process_new_packets().expect("a true client");
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).expect("memory takes everything");
            }
            client.read_tls(&mut &wire[..]).expect("memory gives everything");
            client.process_new_packets().expect("a true server");
            wire.clear();
        }
        let group = client.negotiated_key_exchange_group().map(|group| group.name());
        assert_eq!(group, Some(NamedGroup::X25519MLKEM768));
        assert!(server.peer_certificates().is_some() && client.peer_certificates().is_some());
    }
}

type Certified = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn certified(name: &str, issuer: &Issuer<'_, KeyPair>) -> Result<Certified> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let certificate = CertificateParams::new(vec![name.to_owned()])?.signed_by(&key, issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok((vec![certificate.der().clone()], key))
}
