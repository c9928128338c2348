//! Relays and rendezvous servers through proxies. Either only the proxy can resolve the relay's
//! name, or the relay's address is a trap for direct packets.

use std::process::Command;

use crate::support::proxy::{NAME, Proxy, Speaks, Trap};
use crate::support::{Process, World, tree};

fn relay(world: &World) -> (Process, String) {
    let mut command = world.wraith("server");
    command.args(["relay", "--json", "--listen", "127.0.0.1:0"]);
    let mut relay = Process::start("relay", &mut command);
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    let port = address.rsplit_once(':').unwrap().1;
    (relay, format!("{NAME}:{port}"))
}

/// Starts a relay, and a trap at the address that clients have.
fn relay_and_trap(world: &World) -> (Process, Trap) {
    let (relay, server) = relay(world);
    let port = server.rsplit_once(':').unwrap().1.parse().unwrap();
    (relay, Trap::new(port))
}

/// Runs a transfer by code with only the relay at `server`. `proxied` sets the proxy of both sides.
fn transfer(world: &World, server: &str, proxied: impl Fn(&mut Command)) {
    transfer_of(world, server, 1_000_000, proxied);
}

/// The same with this many bytes.
fn transfer_of(world: &World, server: &str, bytes: usize, proxied: impl Fn(&mut Command)) {
    let film = world.file("film.mov", 1, bytes);
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--relay-only", "--relay", server]).arg(&film);
    proxied(&mut command);
    let mut sender = Process::start("send", &mut command);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "--timeout", "60"]);
    command.args(["--relay-only", "--relay", server, "-o"]);
    command.arg(world.target()).arg(sender.code());
    proxied(&mut command);
    let received = Process::start("receive", &mut command).succeed();
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let connected = received.all("connected").next().unwrap();
    assert_eq!(connected["path"], "relay", "{connected}");
}

/// Checks that a transfer goes through the proxy alone.
fn all_by_proxy(proxy: &Proxy, proxied: impl Fn(&mut Command)) {
    let world = World::new();
    let (_relay, server) = relay(&world);
    transfer(&world, &server, proxied);
    // Each side connects to the relay, and to its rendezvous server.
    let asked = proxy.asked();
    assert!(asked.len() >= 4 && asked.iter().all(|target| *target == server), "{asked:?}");
}

#[test]
fn a_code_and_its_transfer_go_through_a_socks5_proxy() {
    let proxy = Proxy::start(Speaks::Socks5);
    let url = format!("socks5://{}", proxy.address);
    all_by_proxy(&proxy, |command| {
        command.args(["--proxy", &url]);
    });
    assert_eq!(proxy.associations(), (0, 2), "each side has asked, and goes by TLS");
}

#[test]
fn a_transfer_uses_udp_through_a_socks5_proxy() {
    let world = World::new();
    let (_relay, trap) = relay_and_trap(&world);
    let named = format!("{NAME}:{}", trap.address.port());
    // The relay's address, resolvable by the proxy alone or by both.
    for (server, bytes) in [(named, 30_000_000), (trap.address.to_string(), 29_000_000)] {
        let proxy = Proxy::start(Speaks::Socks5AndUdp);
        transfer_of(&world, &server, bytes, |command| {
            command.args(["--proxy", &proxy.url()]);
        });
        assert_eq!(proxy.associations(), (2, 0));
        // The data goes up from one side and down to the other. The bytes of the handshakes over
        // TLS are fewer than the whole overhead.
        let (up, down) = proxy.udp_bytes();
        assert!(up > bytes as u64 * 9 / 10 && down > bytes as u64 * 9 / 10, "{up} {down}");
        trap.assert_empty();
        std::fs::remove_file(world.target().join("film.mov")).unwrap();
    }
}

#[test]
fn a_transfer_outlives_the_end_of_its_udp_at_the_proxy() {
    const BYTES: usize = 40_000_000;
    const CARRIED: u64 = 8_000_000;
    let world = World::new();
    let (_relay, trap) = relay_and_trap(&world);
    let proxy = Proxy::start(Speaks::Socks5AndUdpUpTo(CARRIED));
    transfer_of(&world, &trap.address.to_string(), BYTES, |command| {
        command.args(["--proxy", &proxy.url()]);
    });
    assert_eq!(proxy.associations(), (2, 0));
    let (up, _) = proxy.udp_bytes();
    assert!((CARRIED..BYTES as u64 / 2).contains(&up), "{up}");
    trap.assert_empty();
}

#[test]
fn forged_udp_from_a_proxy_is_ignored() {
    let world = World::new();
    let (_relay, trap) = relay_and_trap(&world);
    let proxy = Proxy::start(Speaks::Socks5AndLies);
    transfer_of(&world, &trap.address.to_string(), 5_000_000, |command| {
        command.args(["--proxy", &proxy.url()]);
    });
    assert_eq!(proxy.associations(), (2, 0));
    trap.assert_empty();
}

/// Without a proxy, the socket itself asks the relay directly by UDP for its outside address.
#[test]
fn a_relay_behind_a_proxy_gets_no_direct_address_query() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    for speaks in [Speaks::Socks5AndUdp, Speaks::Socks5, Speaks::Http] {
        let (_relay, trap) = relay_and_trap(&world);
        let proxy = Proxy::start(speaks);
        let url = match speaks {
            Speaks::Http => format!("http://{}", proxy.address),
            _ => proxy.url(),
        };
        let place = ["--relay", &trap.address.to_string(), "--proxy", &url];
        // Both sides may use direct paths and exchange their addresses; that is what they ask the
        // relay for.
        let mut command = world.wraith("sender");
        command.args(["send", "--json"]).args(place).arg(&film);
        let mut sender = Process::start("send", &mut command);
        world.receive_with(&sender.code(), &place).succeed();
        sender.succeed();
        trap.assert_empty();
        std::fs::remove_file(world.target().join("film.mov")).unwrap();
    }
}

#[test]
fn the_environment_names_the_proxy_where_no_option_does() {
    let proxy = Proxy::start(Speaks::Http);
    let url = format!("http://{}", proxy.address);
    all_by_proxy(&proxy, |command| {
        command.env("ALL_PROXY", &url);
    });
}

#[test]
fn the_doctor_tries_relay_and_rendezvous_through_the_proxy() {
    let world = World::new();
    let (_relay, server) = relay(&world);
    let proxy = Proxy::start(Speaks::Socks5);
    let url = format!("socks5://{}", proxy.address);
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--relay", &server, "--proxy", &url]);
    let outcome = Process::start("doctor", &mut command).succeed();
    for name in ["relay", "rendezvous"] {
        let check = outcome.all("check").find(|check| check["name"] == name).unwrap();
        let through = format!("through {url}");
        assert!(check["found"].as_str().unwrap().contains(&through), "{check}");
    }
    assert_eq!(proxy.asked(), [&*server, &*server]);
}

#[test]
fn the_doctor_reports_whether_the_proxy_carries_udp() {
    let world = World::new();
    let (_relay, trap) = relay_and_trap(&world);
    for (speaks, by) in [(Speaks::Socks5AndUdp, "over TLS and UDP"), (Speaks::Socks5, "over TLS")] {
        let proxy = Proxy::start(speaks);
        let mut command = world.wraith("one");
        let server = trap.address.to_string();
        command.args(["doctor", "--json", "--relay", &server, "--proxy", &proxy.url()]);
        let outcome = Process::start("doctor", &mut command).succeed();
        let check = outcome.all("check").find(|check| check["name"] == "relay").unwrap();
        let found = format!("answers {by} through {}", proxy.url());
        assert!(check["found"].as_str().unwrap().contains(&found), "{check}");
        trap.assert_empty();
    }
}

#[test]
fn an_invalid_proxy_url_is_reported_without_its_password() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let bad = "ftp://somebody:topsecret@proxy.test";
    for (named, variable) in
        [("--proxy", None), ("--proxy", Some("WRAITH_PROXY")), ("HTTPS_PROXY", Some("HTTPS_PROXY"))]
    {
        for words in [&["doctor"][..], &["send"], &["listen", "--accept", "contacts"]] {
            let mut command = world.wraith("one");
            command.args(words);
            if words == ["send"] {
                command.arg(&film);
            }
            match variable {
                Some(variable) => command.env(variable, bad),
                None => command.args(["--proxy", bad]),
            };
            let output = command.output().unwrap();
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert_eq!(output.status.code(), Some(2), "{text}");
            assert!(text.contains(named) && text.contains("only socks5:// and http://"), "{text}");
            assert!(!text.contains("topsecret") && !text.contains("somebody"), "{text}");
        }
    }
}
