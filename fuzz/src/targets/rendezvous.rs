//! Bytes of a connection between a rendezvous server and its clients, in both directions.

use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, split};

use super::meeting::message;

pub(crate) fn run(input: &[u8]) {
    let mut buffer = input.to_vec();
    loop {
        let before = buffer.len();
        match split(&mut buffer) {
            Ok(Some(frame)) => {
                assert_eq!(before - buffer.len(), 2 + frame.len(), "its length and itself");
                decode(&frame);
            }
            // Incomplete input is shorter than one frame; otherwise a peer could make the other
            // side buffer without limit.
            Ok(None) => return assert!(before < 1024, "{before} bytes are kept"),
            Err(_) => return,
        }
    }
}

fn decode(frame: &[u8]) {
    if let Some(client) = ClientFrame::decode(frame) {
        assert_eq!(client.encode()[2..], *frame);
        if let ClientFrame::Join { message: said, .. } | ClientFrame::Send { message: said, .. } =
            &client
        {
            message(said);
        }
    }
    if let Some(server) = ServerFrame::decode(frame) {
        assert_eq!(server.encode()[2..], *frame);
        if let ServerFrame::Arrived { message: said, .. }
        | ServerFrame::Message { message: said, .. } = &server
        {
            message(said);
        }
    }
}
