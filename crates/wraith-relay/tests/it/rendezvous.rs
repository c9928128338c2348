//! The rendezvous server's sockets against clients that do not read or send garbage, and against
//! many clients.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_crypto::NodeId;
use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, probe, split};
use wraith_discovery::{CodeOptions, Direct, Lan, Places, TicketSide, TimeLimit, announce, join};
use wraith_relay::rendezvous::Server;
use zeroize::Zeroizing;

use super::support::HANG;

/// Starts a server that runs until the tasks are dropped.
async fn server(tasks: &mut JoinSet<()>) -> SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run().await.unwrap() });
    address
}

async fn next_frame(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<ServerFrame> {
    loop {
        if let Ok(Some(frame)) = split(buffer) {
            return ServerFrame::decode(&frame);
        }
        match timeout(HANG, stream.read_buf(buffer)).await.unwrap() {
            Ok(1..) => {}
            _ => return None,
        }
    }
}

/// Connects from another loopback address, which has its own per-address limits.
async fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn is_hung_up(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(HANG, stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_probe_returns_the_observed_address() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let seen = probe(&address.to_string(), &Direct).await.unwrap();
    assert!(seen.ip().is_loopback());
    tasks.shutdown().await;
    assert!(probe(&address.to_string(), &Direct).await.is_err());
}

#[tokio::test]
async fn connections_per_address_are_limited() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut stream = connect_from([127, 0, 0, 2], address).await;
        stream.write_all(&ClientFrame::Ping.encode()).await.unwrap();
        assert_eq!(next_frame(&mut stream, &mut Vec::new()).await, Some(ServerFrame::Pong));
        held.push(stream);
    }
    assert!(is_hung_up(&mut connect_from([127, 0, 0, 2], address).await).await);
    let mut neighbour = connect_from([127, 0, 0, 3], address).await;
    neighbour.write_all(&ClientFrame::Ping.encode()).await.unwrap();
    assert_eq!(next_frame(&mut neighbour, &mut Vec::new()).await, Some(ServerFrame::Pong));
}

#[tokio::test]
async fn a_malformed_frame_ends_only_its_own_connection() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[0xff; 3000]).await.unwrap();
    assert!(is_hung_up(&mut stream).await);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(address).await.unwrap();
    // The client sends pings and reads no answers. The server gives up before the frame limit is
    // reached.
    let pings = ClientFrame::Ping.encode().repeat(1000);
    let noise = async { while deaf.write_all(&pings).await.is_ok() {} };
    timeout(HANG, noise).await.unwrap();
}

#[tokio::test]
async fn malformed_connections_from_many_addresses_do_not_block_a_client() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let mut held = Vec::new();
    for n in 0..200_u32 {
        let mut stream = connect_from([127, 0, 1, 1 + (n % 40) as u8], address).await;
        let frame = match n % 4 {
            0 => ClientFrame::Open { nameplate: 1 + n, exact: false }.encode(),
            1 => ClientFrame::Join { nameplate: 1 + n % 100, message: vec![0; 400] }.encode(),
            2 => ClientFrame::Ping.encode().repeat(500),
            _ => vec![0xff; 3000],
        };
        // The server may close the connection at once.
        let _ = stream.write_all(&frame).await;
        held.push(stream);
    }
    let rendezvous = Some(address.to_string());
    let places = Places { lan: Lan::Off, rendezvous, ..Places::default() };
    let options = CodeOptions::new(TicketSide::Creator, HANG);
    let ticket = Box::new(|_, _| Some(Zeroizing::new(b"ticket".to_vec())));
    let mut sender = announce(&places, options, NodeId([1; 32]), ticket).await.unwrap();
    sender.start_serving();
    let limit = TimeLimit::new(HANG);
    let joined =
        join(sender.code(), NodeId([2; 32]), None, &places, limit, Box::new(|| true), None).await;
    assert_eq!(*joined.unwrap().ticket, b"ticket");
}

#[tokio::test]
async fn a_shutdown_ends_the_server_and_closes_all_connections() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run_until(async { drop(stopped.await) }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&ClientFrame::Ping.encode()).await.unwrap();
    assert_eq!(next_frame(&mut stream, &mut Vec::new()).await, Some(ServerFrame::Pong));
    stop.send(()).unwrap();
    timeout(HANG, running).await.unwrap().unwrap().unwrap();
    assert!(is_hung_up(&mut stream).await);
    assert!(TcpStream::connect(address).await.is_err());
    let quick = Duration::from_millis(1);
    assert!(timeout(quick, std::future::pending::<()>()).await.is_err(), "the runtime lives on");
}
