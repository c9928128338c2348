//! The table of conditions, with the result of each side.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::scene::{End, Scene};
use crate::lying::sender::{LyingSender, offer_of, raw_file};
use crate::support::{World, lan, other_words, tree};

/// The sides and their results.
pub type Ends = Vec<(&'static str, End)>;

/// The description of a condition, and the function that plays it.
pub type Condition = (&'static str, fn(&Scene) -> Ends);

/// A valid ticket of version 1.
const OLDER_TICKET: &str = "wraith:agfiry65oqe7dfp5klns2pf2lvzmuzyjx4ozieq36n2iqanub5xvyaqcaibaeaqcaibaeaqcaibaeaqa6w2muya";
const TICKET: &[&str] = &["--ticket"];
const LAN: &[&str] = &["--lan", "lo"];
const AT_ONCE: &[&str] = &["--reconnect", "0"];

pub const ALL: [Condition; 44] = [
    ("a missing file", |s| alone(s, "sender", &["send", "missing.mov"])),
    ("an unknown option", |s| alone(s, "sender", &["send", "--frob", "film.mov"])),
    ("an invalid value", |s| alone(s, "sender", &["send", "--rate", "fast", "film.mov"])),
    ("a word that no code contains", |s| {
        alone(s, "receiver", &["receive", "-y", "7-crater-lemom"])
    }),
    ("neither a code nor a ticket", |s| alone(s, "receiver", &["receive", "-y", "hello"])),
    ("a ticket of an older version", |s| alone(s, "receiver", &["receive", "-y", OLDER_TICKET])),
    ("nothing on standard input to answer the question", |s| {
        alone(s, "receiver", &["receive", "7-crater-lemon"])
    }),
    ("no meeting place", |s| alone(s, "receiver", &["receive", "-y", "7-crater-lemon"])),
    ("an unknown contact", |s| alone(s, "sender", &["send", "film.mov", "--to", "anna"])),
    ("several files to standard output", folder_to_stdout),
    ("no peer with this code, on the local network", |s| {
        let _network = lan::own_network();
        let words = ["receive", "-y", "--timeout", "1", "--lan", "lo", "7-crater-lemon"];
        alone(s, "receiver", &words)
    }),
    ("a relay with an invalid certificate", |s| {
        fs::write(s.world.path("none.pem"), "none").unwrap();
        let pem = s.world.path("none.pem").to_str().unwrap().to_owned();
        let words = ["relay", "--listen", "127.0.0.1:0", "--certificate", &pem, "--key", &pem];
        alone(s, "relay", &words)
    }),
    ("no peer with this code, at a rendezvous server", |s| {
        let server = s.world.rendezvous();
        let words =
            ["receive", "-y", "--timeout", "1", "--rendezvous", &server.1, "7-crater-lemon"];
        alone(s, "receiver", &words)
    }),
    ("no peer at the ticket's addresses", nobody_at_the_addresses),
    ("no receiver in time", |s| {
        alone(s, "sender", &["send", "--ticket", "--timeout", "1", "film.mov"])
    }),
    ("a contact that does not listen", contact_away),
    ("a code that expires unused", |s| {
        let _network = lan::own_network();
        alone(s, "sender", &["send", "--expires", "1", "--lan", "lo", "film.mov"])
    }),
    ("the receiver declines", declined),
    ("a listener without this machine among its contacts", not_admitted),
    ("wrong words, on the local network", |s| on_lan(s, wrong_words)),
    ("wrong words, at a rendezvous server", |s| at_server(s, wrong_words)),
    ("a code that another peer has used, on the local network", |s| on_lan(s, used_code)),
    ("a code that another peer has used, at a rendezvous server", |s| at_server(s, used_code)),
    ("a code that this machine has tried before", tried_before),
    ("a ticket of an offer that has ended", old_ticket),
    ("another process of this user already receives the offer", forgotten_terminal),
    ("the sender lists an unsafe name", unsafe_name),
    ("a home folder that other users can write to", |s| {
        fs::create_dir_all(s.world.path("home-one")).unwrap();
        tree::set_mode(&s.world.path("home-one"), 0o777);
        alone(s, "one", &["id"])
    }),
    ("the sender is killed", |s| {
        let (sender, receiver) = s.under_way(AT_ONCE);
        sender.kill();
        vec![("receiver", receiver.end())]
    }),
    ("the receiver is killed", |s| {
        let (sender, receiver) = s.under_way(AT_ONCE);
        receiver.kill();
        vec![("sender", sender.end())]
    }),
    ("the sender is killed, and does not come back", |s| {
        let (sender, receiver) = s.under_way(&["--reconnect", "1"]);
        sender.kill();
        vec![("receiver", receiver.end())]
    }),
    ("Ctrl-C at the sender", |s| to_sender(s, libc::SIGINT)),
    ("SIGTERM at the receiver", |s| to_receiver(s, libc::SIGTERM)),
    ("the receiver's terminal is closed", |s| to_receiver(s, libc::SIGHUP)),
    ("Ctrl-\\ at the receiver", |s| to_receiver(s, libc::SIGQUIT)),
    ("a target that is a file", |s| {
        fs::write(s.world.path("file"), "").unwrap();
        let (_sender, ticket) = s.send(TICKET);
        let out = s.world.path("file").display().to_string();
        alone(s, "receiver", &["receive", "-y", "-o", &out, &ticket])
    }),
    ("the target folder is deleted during the transfer", |s| {
        let (sender, receiver) = s.under_way(AT_ONCE);
        fs::remove_dir_all(s.world.target()).unwrap();
        both(sender.end(), receiver.end())
    }),
    ("a file that cannot be hashed", |s| alone(s, "one", &["hash", "missing"])),
    ("an identity that other users can read", |s| {
        let made = s.world.wraith("one").arg("id").output().unwrap();
        assert!(made.status.success());
        tree::set_mode(&s.world.path("home-one/identity"), 0o644);
        alone(s, "one", &["id"])
    }),
    ("standard output that cannot be written", |_| {
        // A failed write to standard output is reported on standard error.
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let with = |command: &mut Command| {
            command.stdout(full);
        };
        let people = Scene { json: false, world: World::new() };
        vec![("one", people.start_with("one", &["id"], "", with).end())]
    }),
    ("a file that was changed after the transfer", |s| {
        let film = received(s);
        fs::write(&film, "another").unwrap();
        let target = s.world.target().display().to_string();
        alone(s, "receiver", &["verify", &target])
    }),
    ("a folder without a recorded transfer", |s| {
        let target = s.world.target().display().to_string();
        alone(s, "receiver", &["verify", &target])
    }),
    ("a file is deleted at the sender during the transfer", |s| {
        meanwhile(s, |s| fs::remove_file(s.world.source().join("tree/last")).unwrap())
    }),
    ("a file becomes a link at the sender during the transfer", |s| {
        meanwhile(s, |s| {
            let last = s.world.source().join("tree/last");
            fs::remove_file(&last).unwrap();
            symlink("/etc/passwd", &last).unwrap();
        })
    }),
];

fn both(sender: End, receiver: End) -> Ends {
    vec![("sender", sender), ("receiver", receiver)]
}

fn to_sender(scene: &Scene, signal: i32) -> Ends {
    let (sender, receiver) = scene.under_way(AT_ONCE);
    sender.signal(signal);
    both(sender.end(), receiver.end())
}

fn to_receiver(scene: &Scene, signal: i32) -> Ends {
    let (sender, receiver) = scene.under_way(AT_ONCE);
    receiver.signal(signal);
    both(sender.end(), receiver.end())
}

/// Runs one program that ends by itself.
fn alone(scene: &Scene, name: &'static str, words: &[&str]) -> Ends {
    vec![(name, scene.start(name, words).end())]
}

fn folder_to_stdout(scene: &Scene) -> Ends {
    tree::file(&scene.world.source().join("tree/a"), 1, 1);
    tree::file(&scene.world.source().join("tree/b"), 1, 1);
    let words = ["send", "--ticket", "--listen", "127.0.0.1:0", "tree"];
    let sender = scene.start("sender", &words);
    let ticket = sender.wait_for("wraith receive ");
    alone(scene, "receiver", &["receive", "-o", "-", &ticket])
}

fn nobody_at_the_addresses(scene: &Scene) -> Ends {
    let (sender, ticket) = scene.send(TICKET);
    sender.kill();
    vec![("receiver", scene.receive("receiver", &ticket, &["--timeout", "1"]).end())]
}

fn contact_away(scene: &Scene) -> Ends {
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    scene.world.know("sender", "anna", Some(&nobody.to_string()));
    alone(scene, "sender", &["send", "film.mov", "--to", "anna", "--timeout", "1"])
}

fn not_admitted(scene: &Scene) -> Ends {
    let (listener, address) = scene.world.listen("anna", &["--accept", "contacts"]);
    scene.world.know("sender", "anna", Some(&address));
    let ends = alone(scene, "sender", &["send", "film.mov", "--to", "anna", "--timeout", "1"]);
    listener.kill();
    ends
}

fn declined(scene: &Scene) -> Ends {
    let (sender, ticket) = scene.send(TICKET);
    let receiver = scene.start_with("receiver", &["receive", &ticket], "n\n", |_| {});
    let receiver = receiver.end();
    both(sender.end(), receiver)
}

/// Two windows of one user.
fn forgotten_terminal(scene: &Scene) -> Ends {
    let (sender, receiver) = scene.under_way(&[]);
    let ticket = sender.wait_for("wraith receive ");
    let home = scene.world.path("home-receiver");
    let words = ["receive", "--yes", "-o", "elsewhere", &ticket];
    let second = scene.start_with("second", &words, "", |command| {
        command.env("WRAITH_HOME", home);
    });
    let ends = vec![("second window", second.end())];
    receiver.kill();
    ends
}

fn unsafe_name(scene: &Scene) -> Ends {
    let sender = LyingSender::listen();
    let receiver = scene.receive("receiver", &sender.ticket(), AT_ONCE);
    let mut liar = sender.offer(offer_of(1, 1));
    liar.list_raw(&raw_file(b"../a", 1));
    liar.end_manifest();
    let ends = vec![("receiver", receiver.end())];
    drop(liar);
    ends
}

fn on_lan(scene: &Scene, play: fn(&Scene, &[&str]) -> Ends) -> Ends {
    let _network = lan::own_network();
    play(scene, LAN)
}

fn at_server(scene: &Scene, play: fn(&Scene, &[&str]) -> Ends) -> Ends {
    let server = scene.world.rendezvous();
    play(scene, &["--rendezvous", &server.1])
}

fn wrong_words(scene: &Scene, places: &[&str]) -> Ends {
    let (sender, code) = scene.send(places);
    let receiver = scene.receive("receiver", &other_words(&code), places).end();
    both(sender.end(), receiver)
}

fn used_code(scene: &Scene, places: &[&str]) -> Ends {
    // The sender is slow, so it is still there.
    let (sender, code) = scene.send(&[places, &["--rate", "1M"]].concat());
    let first = scene.receive("receiver", &code, places);
    sender.wait_for(if scene.json { "\"event\":\"offer\"" } else { "Offered " });
    let late = scene.receive("late", &code, places).end();
    assert_eq!((sender.end().exit, first.end().exit), (0, 0));
    vec![("late receiver", late)]
}

fn tried_before(scene: &Scene) -> Ends {
    let _network = lan::own_network();
    let (sender, code) = scene.send(LAN);
    let wrong = other_words(&code);
    assert_eq!(scene.receive("receiver", &wrong, LAN).end().exit, 5);
    assert_eq!(sender.end().exit, 5);
    vec![("receiver", scene.receive("receiver", &wrong, LAN).end())]
}

fn old_ticket(scene: &Scene) -> Ends {
    let (sender, ticket) = scene.send(TICKET);
    let port = "127.0.0.1:".to_owned();
    sender.signal(libc::SIGTERM);
    sender.end();
    // The same port, with another secret.
    let ticket_of = |ticket: &str| ticket.parse::<wraith_discovery::Ticket>().unwrap();
    let at = ticket_of(&ticket).addresses()[0].port();
    let words = ["send", "--ticket", "--new", "film.mov", "--listen"];
    let address = format!("{port}{at}");
    let again = scene.start("sender", &[&words, &[address.as_str()][..]].concat());
    again.wait_for("wraith receive ");
    vec![("receiver", scene.receive("receiver", &ticket, &[]).end())]
}

/// Transfers the film. Returns the received file.
fn received(scene: &Scene) -> std::path::PathBuf {
    let (sender, ticket) = scene.send(TICKET);
    assert_eq!(scene.receive("receiver", &ticket, &[]).end().exit, 0);
    assert_eq!(sender.end().exit, 0);
    scene.world.target().join("film.mov")
}

/// Transfers a tree, and applies `change` to its last file meanwhile.
fn meanwhile(scene: &Scene, change: fn(&Scene)) -> Ends {
    let source = scene.world.source();
    fs::create_dir(source.join("tree")).unwrap();
    fs::rename(source.join("film.mov"), source.join("tree/film.mov")).unwrap();
    tree::file(&source.join("tree/last"), 2, 3_000_000);
    let words = ["send", "--ticket", "--listen", "127.0.0.1:0", "--rate", "1M", "tree"];
    let sender = scene.start("sender", &words);
    let ticket = sender.wait_for("wraith receive ");
    let receiver = scene.receive("receiver", &ticket, &[]);
    super::scene::until("something arrives", || scene.world.target().join("tree").exists());
    change(scene);
    both(sender.end(), receiver.end())
}
