//! An offer to a contact, made from a thread inside a tokio runtime.

use std::fs;
use std::mem::size_of;
use std::path::Path;
use std::ptr;

use wraith::state::StateError;
use wraith::{AcceptOptions, Lan, Node, NodeId};
use wraith_c::bytes::wraith_bytes_t;
use wraith_c::files::node::*;
use wraith_c::files::offer::*;
use wraith_c::files::transfer::*;
use wraith_c::status::wraith_status_t::{self, *};
use wraith_c::waiting::WRAITH_FOREVER;

fn bytes(text: &str) -> wraith_bytes_t {
    wraith_bytes_t { data: text.as_ptr(), len: text.len() }
}

fn new_node() -> wraith_node_t {
    let options = wraith_node_options_t {
        struct_size: size_of::<wraith_node_options_t>(),
        identity: 0,
        state_folder: bytes(""),
        rendezvous: bytes(""),
        lan_off: 1,
        dht: 0,
    };
    let mut node = 0;
    // SAFETY: both pointers point to local values.
    assert_eq!(unsafe { wraith_node_new(&options, &mut node) }, WRAITH_OK);
    node
}

fn id_of(node: wraith_node_t) -> NodeId {
    let (mut id, mut len) = ([0; 32], 0);
    // SAFETY: the buffer has the given length.
    assert_eq!(unsafe { wraith_node_id(node, id.as_mut_ptr(), 32, &mut len) }, WRAITH_OK);
    NodeId(id)
}

fn add_contact(node: wraith_node_t, name: &str, id: NodeId, address: &str) -> wraith_status_t {
    let (name, id, address) = (name.as_bytes(), id.as_bytes(), address.as_bytes());
    // SAFETY: each pointer is that of a slice, with the slice's length.
    unsafe {
        wraith_node_add_contact(
            node,
            name.as_ptr(),
            name.len(),
            id.as_ptr(),
            id.len(),
            address.as_ptr(),
            address.len(),
        )
    }
}

fn offer_to(node: wraith_node_t, contact: &str, path: &Path) -> wraith_transfer_t {
    let options = wraith_offer_options_t {
        struct_size: size_of::<wraith_offer_options_t>(),
        to: wraith_offer_to_t::WRAITH_OFFER_TO_CONTACT as u32,
        receivers: 0,
        contact: bytes(contact),
        bind: bytes(""),
        bytes_per_second: 0,
        expires_s: 0,
        timeout_ms: 0,
        progress_ms: 0,
    };
    let (path, mut transfer) = (bytes(path.to_str().unwrap()), 0);
    // SAFETY: as above; there are no callbacks.
    let status = unsafe { wraith_offer(node, &path, 1, &options, ptr::null(), &mut transfer) };
    assert_eq!(status, WRAITH_OK);
    transfer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_that_listens_gets_an_offer_made_inside_a_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film");
    fs::write(&film, vec![7; 300_000]).unwrap();
    let (anna, bob) = (new_node(), Node::builder().lan(Lan::Off).build().unwrap());
    let known = bob.contacts().change(|book| -> Result<_, StateError> {
        Ok(book.add(&"anna".parse().unwrap(), id_of(anna)).is_ok())
    });
    assert!(known.unwrap());
    let into = folder.path().join("into");
    let listening = bob.listen(&into).bind_to("127.0.0.1:0".parse().unwrap()).start();
    let mut listener = listening.await.unwrap();

    assert_eq!(add_contact(anna, "", bob.id(), ""), WRAITH_INVALID_INPUT);
    assert_eq!(add_contact(anna, "bob", NodeId([0; 32]), ""), WRAITH_INVALID_INPUT);
    assert_eq!(add_contact(anna, "bob", bob.id(), &listener.address().to_string()), WRAITH_OK);
    assert_eq!(add_contact(anna, "bob", id_of(anna), ""), WRAITH_INVALID_INPUT);
    let offer = offer_to(anna, "bob", &film);
    let incoming = listener.next().await.unwrap();
    assert_eq!(incoming.sender(), id_of(anna));
    let transfer = incoming.accept(AcceptOptions::default());
    transfer.finished().await.unwrap().complete().unwrap();
    // This blocks a thread of the runtime, which has another one.
    // SAFETY: these calls have no pointers.
    assert_eq!(unsafe { wraith_transfer_wait(offer, WRAITH_FOREVER) }, WRAITH_OK);
    assert_eq!(fs::read(into.join("film")).unwrap(), vec![7; 300_000]);
    // SAFETY: as above.
    let freed = unsafe { (wraith_transfer_free(offer), wraith_node_free(anna)) };
    assert_eq!(freed, (WRAITH_OK, WRAITH_OK));
}
