//! quinn's settings for bulk transfer: the fastest ones on a fast path, without changes to quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};

use wraith_peers::identity;

use crate::Options;

/// Segments that quinn 0.11 puts into one send (`MAX_TRANSMIT_SEGMENTS`), of any size. The
/// kernel refuses batches above 64 KiB, and quinn treats that as loss. So segmentation must be off
/// with large datagrams.
const QUINN_BATCH_SEGMENTS: usize = 10;
/// Maximum bytes of one send: an IPv4 packet of 65,535 bytes without its headers.
const SEND_MAX_BYTES: usize = 65_507;
/// The handshake's packets are padded to `min_mtu`, and quinn writes their length as a varint of
/// two bytes (below 2^14).
const LONG_HEADER_MTU: u16 = 16_000;
const INITIAL_WINDOW_DATAGRAMS: u64 = 10;
/// Initial window of quinn's BBR by default: 200 datagrams.
const BBR_INITIAL_WINDOW: u64 = 200 * 1200;
const MIB: u64 = 1 << 20;

/// Creates an endpoint at `address` that can dial; it also accepts connections if it `serves`.
pub fn endpoint(options: &Options, address: SocketAddr, serves: bool) -> Result<Endpoint> {
    let transport = Arc::new(transport(options));
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(options.mtu)?;
    let server = if serves {
        let mut server = ServerConfig::with_crypto(Arc::new(identity::server()?));
        server.transport_config(Arc::clone(&transport));
        Some(server)
    } else {
        None
    };
    let socket = wraith_peers::bind(address, options.socket_mib * MIB as usize)?;
    let runtime = quinn::default_runtime().context("not inside a runtime")?;
    let mut endpoint = Endpoint::new(config, server, socket, runtime)?;
    let mut client = ClientConfig::new(Arc::new(identity::client()?));
    client.transport_config(transport);
    endpoint.set_default_client_config(client);
    Ok(endpoint)
}

fn transport(options: &Options) -> TransportConfig {
    let mut transport = TransportConfig::default();
    // At most 2^32 MiB: far below the limit of a VarInt.
    let window = u64::from(options.window_mib) * MIB;
    let credit = VarInt::from_u64(window).unwrap_or(VarInt::MAX);
    transport.stream_receive_window(credit).receive_window(credit).send_window(window);
    // Fixed from the start: MTU discovery would take a few lost bursts for a black hole and fall
    // back to 1200.
    transport.initial_mtu(options.mtu).min_mtu(options.mtu.min(LONG_HEADER_MTU));
    transport.mtu_discovery_config(None);
    let batch_bytes = usize::from(options.mtu) * QUINN_BATCH_SEGMENTS;
    transport.enable_segmentation_offload(batch_bytes <= SEND_MAX_BYTES);
    // Ten datagrams, as in RFC 9002: quinn's own 12 KB is less than one large datagram, which would
    // then never be sent.
    let initial_window = INITIAL_WINDOW_DATAGRAMS * u64::from(options.mtu);
    if options.bbr {
        let mut bbr = BbrConfig::default();
        bbr.initial_window(initial_window.max(BBR_INITIAL_WINDOW));
        transport.congestion_controller_factory(Arc::new(bbr));
    } else {
        let mut cubic = CubicConfig::default();
        cubic.initial_window(initial_window);
        transport.congestion_controller_factory(Arc::new(cubic));
    }
    transport
}
