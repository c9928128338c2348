//! An endpoint whose I/O runs on the runtime of its application.

use std::io;

use wraith_transport::{Bytes, CloseReason, Connection, Endpoint, RecvStream};

use crate::support::{Pattern, V4, access_key, endpoint, node_id, run};

fn on_runtime<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

fn spawn_drive(endpoint: &Endpoint) -> tokio::task::JoinHandle<io::Result<()>> {
    tokio::spawn(endpoint.drive())
}

async fn read_to_end(recv: &mut RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(chunk) = recv.read_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

/// Answers each stream with its bytes.
async fn answer(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_stream().await {
        tokio::spawn(async move {
            let request = read_to_end(&mut recv).await;
            send.finish_with([Bytes::from(request)]).await.unwrap();
        });
    }
}

async fn ask(connection: &Connection, number: u32) {
    let (mut send, mut recv) = connection.open_stream().await.unwrap();
    send.finish_with([Bytes::copy_from_slice(&number.to_be_bytes())]).await.unwrap();
    assert_eq!(read_to_end(&mut recv).await, number.to_be_bytes());
}

/// Returns both sides of a connection. The server answers on the current runtime.
async fn connected(client: &Endpoint, server: &Endpoint) -> Connection {
    let (address, access_key) = ([server.local_addr()], access_key(2));
    let (opened, accepted) =
        tokio::join!(client.connect(&address, node_id(2), &access_key), server.accept());
    tokio::spawn(answer(accepted.unwrap()));
    opened.unwrap()
}

#[test]
fn both_sides_of_a_connection_can_be_driven() {
    on_runtime(async {
        let (client, server) = (endpoint(1, V4), endpoint(2, V4));
        let drivers = [spawn_drive(&client), spawn_drive(&server)];
        let connection = connected(&client, &server).await;
        for number in 0..500 {
            ask(&connection, number).await;
        }
        let many: Vec<_> = (0..300)
            .map(|number| {
                let connection = connection.clone();
                tokio::spawn(async move { ask(&connection, number).await })
            })
            .collect();
        for task in many {
            task.await.unwrap();
        }
        connection.close(0, "");
        client.start_close();
        server.start_close();
        for driver in drivers {
            driver.await.unwrap().unwrap();
        }
        client.closed().await;
        server.closed().await;
    });
}

#[test]
fn a_driven_endpoint_moves_bulk_data_in_order() {
    const LEN: u64 = 8 << 20;
    on_runtime(async {
        let (client, server) = (endpoint(1, V4), endpoint(2, V4));
        let _drivers = [spawn_drive(&client), spawn_drive(&server)];
        let access_key = access_key(2);
        let address = [server.local_addr()];
        let (opened, accepted) =
            tokio::join!(client.connect(&address, node_id(2), &access_key), server.accept());
        let (opened, accepted) = (opened.unwrap(), accepted.unwrap());
        let reader = tokio::spawn(async move {
            let (_send, mut recv) = accepted.accept_stream().await.unwrap();
            (Pattern::new(3).verify(&mut recv).await, accepted)
        });
        let (mut send, _recv) = opened.open_stream().await.unwrap();
        Pattern::new(3).write(&mut send, LEN).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
        assert_eq!(reader.await.unwrap().0, LEN);
    });
}

#[test]
fn the_io_thread_takes_over_when_the_driver_is_dropped() {
    on_runtime(async {
        let (client, server) = (endpoint(1, V4), endpoint(2, V4));
        let connection = connected(&client, &server).await;
        for round in 0..20 {
            let drivers = [spawn_drive(&client), spawn_drive(&server)];
            for number in 0..20 {
                ask(&connection, 100 * round + number).await;
            }
            drivers.iter().for_each(tokio::task::JoinHandle::abort);
            for driver in drivers {
                assert!(driver.await.unwrap_err().is_cancelled());
            }
            for number in 20..40 {
                ask(&connection, 100 * round + number).await;
            }
        }
    });
    // The runtime is gone, and the endpoints with it.
}

#[test]
fn an_endpoint_has_one_driver_at_a_time() {
    on_runtime(async {
        let client = endpoint(1, V4);
        let first = spawn_drive(&client);
        tokio::task::yield_now().await;
        let error = client.drive().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        first.abort();
        let _ = first.await;
        let second = spawn_drive(&client);
        client.start_close();
        second.await.unwrap().unwrap();
        client.closed().await;
        assert!(client.drive().await.is_ok(), "a closed endpoint has nothing to drive");
    });
}

#[test]
fn a_driver_does_not_keep_its_endpoint_open() {
    let server = endpoint(2, V4);
    let address = server.local_addr();
    let waiter = std::thread::spawn(move || {
        let accepted = run(server.accept()).unwrap();
        run(accepted.open_stream()).unwrap().0.finish().unwrap();
        run(accepted.closed())
    });
    on_runtime(async {
        let client = endpoint(1, V4);
        let driver = spawn_drive(&client);
        let connection = client.connect([address], node_id(2), &access_key(2)).await.unwrap();
        // The server has accepted the connection once its stream arrives.
        drop(connection.accept_stream().await.unwrap());
        drop((client, connection));
        driver.await.unwrap().unwrap();
    });
    assert!(matches!(waiter.join().unwrap(), CloseReason::Peer { code: 0, .. }));
}

#[test]
fn another_thread_can_use_a_driven_endpoint() {
    on_runtime(async {
        let (client, server) = (endpoint(1, V4), endpoint(2, V4));
        let _drivers = [spawn_drive(&client), spawn_drive(&server)];
        let connection = connected(&client, &server).await;
        let blocking = tokio::task::spawn_blocking(move || {
            run(async {
                for number in 0..200 {
                    ask(&connection, number).await;
                }
            });
        });
        blocking.await.unwrap();
    });
}
