//! Progress shows the path that the connection uses now, also after a migration.

use std::sync::Arc;

use crate::common::*;
use wraith_transfer::{Event, SendOptions};
use wraith_transport::{AccessKey, Addr, Config, Endpoint, EndpointConfig, block_on};

#[test]
fn progress_shows_the_path_after_a_migration() {
    let folders = Folders::new();
    folders.file("film", &noise(1, 2 * CHUNK));
    // All addresses of the loopback interface lead to the sender.
    let sender = Config::new(EndpointConfig::open(sender_identity())).bind(([0, 0, 0, 0], 0));
    let sender = Endpoint::bind(sender).unwrap();
    let receiver = endpoint(receiver_identity(), false).unwrap();
    let port = sender.local_addr().port();
    let at = move |last| std::net::SocketAddr::from(([127, 0, 0, last], port));
    let peer = sender_identity().node_id();
    let dialled = block_on(receiver.connect(&[at(1)], peer, &AccessKey::public(peer))).unwrap();
    let accepted = block_on(sender.accept()).unwrap();

    let mut options = receive_options(&folders.to());
    let (path, progress) = (dialled.path(), Arc::clone(&options.progress));
    options.events = Arc::new(move |event: Event<'_>| match event {
        Event::Connected { .. } => {
            assert_eq!(progress.remote(), Some(Addr::from(at(1))));
            block_on(path.migrate_to(at(2))).unwrap();
        }
        Event::Offer(_) => assert_eq!(progress.remote(), Some(Addr::from(at(2)))),
        _ => {}
    });
    let link = Link { sender: accepted, receiver: dialled, endpoints: [sender, receiver] };
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let (sent, received) = transfer_over(link, &send, options);
    sent.unwrap();
    received.unwrap();
}
