//! An interceptor in front of a relay with the relay's key: it records all that the relay decrypts.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// First byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// Bytes in both directions.
#[derive(Debug, Default)]
pub struct View {
    /// From the clients to the relay.
    pub up: Vec<u8>,
    /// From the relay to the clients.
    pub down: Vec<u8>,
}

/// A running interceptor; it ends on drop.
pub struct RelayRecorder {
    pub address: SocketAddr,
    view: Arc<Mutex<View>>,
    _stop: oneshot::Sender<()>,
}

#[derive(Clone)]
struct Interceptor {
    relay: SocketAddr,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    view: Arc<Mutex<View>>,
}

impl RelayRecorder {
    /// Starts in front of the relay at `relay`, which keeps its key in the file `pem`.
    pub fn start(relay: SocketAddr, pem: &Path) -> Self {
        let pem = std::fs::read(pem).unwrap();
        let certificate = CertificateDer::from_pem_slice(&pem).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&pem).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(default_provider());
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let view = Arc::default();
        let interceptor = Interceptor {
            relay,
            acceptor: Arc::new(server).into(),
            connector: Arc::new(client).into(),
            view: Arc::clone(&view),
        };
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (_stop, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            runtime.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(interceptor.clone().intercept(stream));
                }
            });
            let _ = runtime.block_on(stopped);
        });
        Self { address, view, _stop }
    }

    /// Returns the bytes recorded since the last call.
    pub fn take(&self) -> View {
        std::mem::take(&mut self.view.lock().unwrap())
    }
}

impl Interceptor {
    async fn intercept(self, inside: TcpStream) {
        let mut first = [0];
        let Ok(1) = inside.peek(&mut first).await else { return };
        let Ok(outside) = TcpStream::connect(self.relay).await else { return };
        if first[0] != TLS_HANDSHAKE {
            return self.pump(inside, outside).await;
        }
        let name = ServerName::try_from("localhost").unwrap();
        let Ok(inside) = self.acceptor.accept(inside).await else { return };
        let outside = self.connector.connect(name, outside).await.expect("the relay answers");
        self.pump(inside, outside).await;
    }

    /// Passes bytes in both directions until both have ended.
    async fn pump(
        &self,
        inside: impl AsyncRead + AsyncWrite,
        outside: impl AsyncRead + AsyncWrite,
    ) {
        let ((from_client, to_client), (from_relay, to_relay)) = (split(inside), split(outside));
        let up = copy(from_client, to_relay, |bytes| {
            self.view.lock().unwrap().up.extend_from_slice(bytes);
        });
        let down = copy(from_relay, to_client, |bytes| {
            self.view.lock().unwrap().down.extend_from_slice(bytes);
        });
        tokio::join!(up, down);
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    record: impl Fn(&[u8]),
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut bytes).await {
        record(&bytes[..len]);
        if to.write_all(&bytes[..len]).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
