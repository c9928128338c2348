//! The echo over quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use wraith_peers::identity;

use crate::{Client, MESSAGE_MAX, STREAMS_MAX, answer};

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(STREAMS_MAX.into());
    Arc::new(transport)
}

/// Answers every stream of every connection.
pub async fn serve(address: SocketAddr) -> Result<()> {
    let mut config = ServerConfig::with_crypto(Arc::new(identity::server()?));
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, address)?;
    println!("{}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    let Ok(request) = recv.read_to_end(MESSAGE_MAX).await else { return };
                    if send.write_chunk(answer(request)).await.is_ok() {
                        let _ = send.finish();
                    }
                });
            }
        });
    }
    Ok(())
}

/// Connects; the endpoint must be kept.
pub async fn connect(address: SocketAddr) -> Result<(impl Client, Endpoint)> {
    let mut config = ClientConfig::new(Arc::new(identity::client()?));
    config.transport_config(transport());
    let mut endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(address, identity::SERVER_NAME)?.await?;
    Ok((connection, endpoint))
}

impl Client for Connection {
    async fn ask(&self, request: Bytes) -> Result<Vec<u8>> {
        let (mut send, mut recv) = self.open_bi().await?;
        send.write_chunk(request).await?;
        send.finish()?;
        Ok(recv.read_to_end(MESSAGE_MAX).await?)
    }
}
