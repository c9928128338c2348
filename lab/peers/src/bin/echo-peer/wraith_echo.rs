//! The echo over wraith-transport.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytes::Bytes;
use wraith_transport::mover::SocketPool;
use wraith_transport::{
    AccessKey, Config, Connection, Endpoint, EndpointConfig, RecvStream, SecretIdentity,
};

use crate::{Client, MESSAGE_MAX, STREAMS_MAX, answer};

/// Public, as a benchmark has no secrets.
const SERVER_SEED: [u8; 32] = [2; 32];
const CLIENT_SEED: [u8; 32] = [1; 32];

fn endpoint(seed: [u8; 32], address: SocketAddr, with_pool: bool) -> Result<Endpoint> {
    let mut config = EndpointConfig::open(SecretIdentity::from_seed(seed));
    config.transport.streams_max = u64::from(STREAMS_MAX);
    let mut config = Config::new(config).bind(address);
    if with_pool {
        config.movers.push(Arc::new(SocketPool::new()?));
    }
    Ok(Endpoint::bind(config)?)
}

/// Answers every stream of every connection.
pub async fn serve(address: SocketAddr, with_pool: bool) -> Result<()> {
    let endpoint = endpoint(SERVER_SEED, address, with_pool)?;
    println!("{}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Ok((mut send, mut recv)) = connection.accept_stream().await {
                tokio::spawn(async move {
                    let Ok(request) = read_to_end(&mut recv).await else { return };
                    let _ = send.finish_with([answer(request)]).await;
                });
            }
        });
    }
    Ok(())
}

/// Connects; the endpoint must be kept.
pub async fn connect(address: SocketAddr, with_pool: bool) -> Result<(impl Client, Endpoint)> {
    let endpoint = endpoint(CLIENT_SEED, SocketAddr::from(([127, 0, 0, 1], 0)), with_pool)?;
    let peer = SecretIdentity::from_seed(SERVER_SEED).node_id();
    let connection = endpoint.connect([address], peer, &AccessKey::public(peer)).await?;
    Ok((connection, endpoint))
}

impl Client for Connection {
    async fn ask(&self, request: Bytes) -> Result<Vec<u8>> {
        let (mut send, mut recv) = self.open_stream().await?;
        send.finish_with([request]).await?;
        read_to_end(&mut recv).await
    }
}

async fn read_to_end(recv: &mut RecvStream) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    while let Some(chunk) = recv.read_chunk().await? {
        message.extend_from_slice(&chunk);
        ensure!(message.len() <= MESSAGE_MAX, "a message above 1 MiB");
    }
    Ok(message)
}
