//! A receiver is killed with SIGKILL at any moment. The same command then continues, and no
//! incomplete file was under a final name. The receiver is this test program again, in a process of
//! its own.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::*;
use wraith_transfer::{SendOptions, receive, serve};
use wraith_transport::{AccessKey, Endpoint, block_on_timeout};

const LIMIT: Duration = Duration::from_secs(30);

/// The receiver process. Does nothing when run as a test.
#[test]
fn child() {
    let Ok(address) = std::env::var("WRAITH_TEST_ADDRESS") else { return };
    let to = std::env::var_os("WRAITH_TEST_TARGET").unwrap();
    let endpoint = endpoint(receiver_identity(), false).unwrap();
    let peer = sender_identity().node_id();
    let address: SocketAddr = address.parse().unwrap();
    let access_key = AccessKey::public(peer);
    let connect = endpoint.connect([address], peer, &access_key);
    let connection = block_on_timeout(connect, LIMIT).unwrap().unwrap();
    let report = receive(connection, receive_options(to.as_ref())).unwrap();
    endpoint.close();
    println!("moved={} ", report.bytes_moved);
}

fn start(endpoint: &Endpoint, folders: &Folders) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kill::child", "--exact", "--nocapture", "--test-threads=1"])
        .env("WRAITH_TEST_ADDRESS", endpoint.local_addr().to_string())
        .env("WRAITH_TEST_TARGET", folders.to())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Serves one receiver, and kills it when the sender has sent `kill_at` bytes. Returns true if the
/// transfer was complete before.
fn serve_and_kill(endpoint: &Endpoint, folders: &Folders, kill_at: u64) -> bool {
    let mut child = start(endpoint, folders);
    let connection = block_on_timeout(endpoint.accept(), LIMIT).unwrap().unwrap();
    let options = SendOptions::new(roots(&folders.from()), SECRET);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| serve(connection.clone(), &options));
        while options.progress.bytes() < kill_at && !sending.is_finished() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The sender would detect the loss after the idle timeout; the test does not wait for it.
        connection.close(0, "killed");
        sending.join().unwrap().is_ok()
    })
}

#[test]
fn a_killed_receiver_continues_where_it_was() {
    let folders = Folders::new();
    folders.file("tree/large", &noise(1, 160 * CHUNK + 5));
    for i in 0..300usize {
        folders.file(&format!("tree/small/{i}"), &noise(i as u8, 1 + i * 50));
    }
    folders.file("tree/taken", &noise(9, 5 * CHUNK));
    fs::create_dir(folders.to().join("tree")).unwrap();
    fs::write(folders.to().join("tree/taken"), b"something else").unwrap();
    let whole = tree(&folders.from());
    let total: u64 = 160 * CHUNK as u64 + 5 + (0..300).map(|i| 1 + i * 50).sum::<u64>();
    let endpoint = endpoint(sender_identity(), true).unwrap();
    for kill_at in [0, CHUNK as u64, 90 * CHUNK as u64, 120 * CHUNK as u64, total - 1] {
        if serve_and_kill(&endpoint, &folders, kill_at) {
            break;
        }
        for (path, node) in tree(&folders.to()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let ours = name.starts_with('.') || name.starts_with("taken");
            if let (Node::File { content, .. }, false) = (&node, ours) {
                let Node::File { content: expected, .. } = &whole[&path] else { panic!() };
                assert_eq!(content, expected, "{name} is under its final name and not complete");
            }
        }
    }
    let child = start(&endpoint, &folders);
    let connection = block_on_timeout(endpoint.accept(), LIMIT).unwrap().unwrap();
    let sent = serve(connection, &SendOptions::new(roots(&folders.from()), SECRET)).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(sent.failed, 0);

    let mut arrived = tree(&folders.to());
    let mut expected = tree(&folders.from());
    assert_eq!(fs::read(folders.to().join("tree/taken")).unwrap(), b"something else");
    arrived.remove(&std::path::PathBuf::from("tree/taken"));
    let copy = arrived.remove(&std::path::PathBuf::from("tree/taken (1)")).unwrap();
    let Node::File { content, .. } = copy else { panic!() };
    assert_eq!(content, blake3::hash(&noise(9, 5 * CHUNK)));
    expected.remove(&std::path::PathBuf::from("tree/taken"));
    // The folder existed before; it keeps its own time.
    arrived.remove(&std::path::PathBuf::from("tree"));
    expected.remove(&std::path::PathBuf::from("tree"));
    assert_eq!(arrived, expected);
}

#[test]
fn the_check_of_a_part_of_a_killed_process_has_a_progress_of_its_own() {
    let folders = Folders::new();
    let total = 400 * CHUNK as u64;
    folders.file("large", &noise(1, total as usize));
    let endpoint = endpoint(sender_identity(), true).unwrap();
    assert!(!serve_and_kill(&endpoint, &folders, total / 4), "faster than the kill");
    let (received, to_check) = transfer_with_check(&folders);
    assert!(to_check > 0);
    assert_eq!(received.bytes_moved, total - to_check, "what was checked is not sent again");
}
