//! The roles of dialler and sender are independent: a sender that dials names its transfer, and the
//! rest is unchanged.

use crate::common::*;
use wraith_transfer::{SendOptions, receive, receive_dialler_hello, send_dialler_hello, serve};
use wraith_transport::{Config, Connection, Endpoint, EndpointConfig, block_on};

struct Dialled {
    sender: Connection,
    receiver: Connection,
    _endpoints: [Endpoint; 2],
}

fn dialled() -> Dialled {
    let bind = |identity| {
        let config = Config::new(EndpointConfig::open(identity));
        Endpoint::bind(config.bind(([127, 0, 0, 1], 0))).unwrap()
    };
    let (sender, receiver) = (bind(sender_identity()), bind(receiver_identity()));
    let (dialled, accepted) = connect(&sender, &receiver, receiver_identity().node_id());
    Dialled { sender: dialled, receiver: accepted, _endpoints: [sender, receiver] }
}

#[test]
fn a_sender_that_dialled_knocks_and_is_fetched_from() {
    let folders = Folders::new();
    folders.file("tree/large", &noise(1, 7 * CHUNK));
    folders.file("tree/small", b"hello");
    let Dialled { sender, receiver, _endpoints } = dialled();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let received = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            assert!(block_on(send_dialler_hello(&sender, &SECRET)));
            serve(sender, &send)
        });
        assert_eq!(block_on(receive_dialler_hello(&receiver)), Some(SECRET));
        let received = receive(receiver, receive_options(&folders.to())).unwrap();
        sending.join().unwrap().unwrap();
        received
    });
    assert_eq!(received.sender, sender_identity().node_id());
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

#[test]
fn other_first_bytes_are_no_dialler_hello() {
    let longer = [&[4, 1][..], &[0; 17]].concat();
    for bytes in [&[][..], &[4, 1, 0], &[1; 18], &longer, &[4, 2, 0, 0, 0, 0, 0, 0, 0, 0]] {
        let Dialled { sender, receiver, _endpoints } = dialled();
        block_on(async {
            let (mut stream, _unused) = sender.open_stream().await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.finish().unwrap();
            stream.acked().await.unwrap();
        });
        assert_eq!(block_on(receive_dialler_hello(&receiver)), None, "{bytes:?}");
    }
}
