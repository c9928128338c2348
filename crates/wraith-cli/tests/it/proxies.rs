//! Relays and rendezvous servers through proxies: a relay whose name the proxy alone knows, so that nothing reaches it past the proxy.

use std::process::Command;

use crate::support::proxy::{NAME, Proxy, Speaks};
use crate::support::{Process, World, tree};

fn relay(world: &World) -> (Process, String) {
    let mut command = world.wraith("server");
    command.args(["relay", "--json", "--listen", "127.0.0.1:0"]);
    let mut relay = Process::start("relay", &mut command);
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    let port = address.rsplit_once(':').unwrap().1;
    (relay, format!("{NAME}:{port}"))
}

/// A transfer by code with nothing but the relay at `server`; `proxied` says how both sides are told of the proxy.
fn transfer(world: &World, server: &str, proxied: impl Fn(&mut Command)) {
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--relay-only", "--relay", server]).arg(&film);
    proxied(&mut command);
    let mut sender = Process::start("send", &mut command);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "--timeout", "60"]);
    command.args(["--relay-only", "--relay", server, "-o"]);
    command.arg(world.target()).arg(sender.code());
    proxied(&mut command);
    let received = Process::start("receive", &mut command).finish();
    received.expect_exit(0);
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));
    let connected = received.all("connected").next().unwrap();
    assert_eq!(connected["path"], "relay", "{connected}");
}

#[test]
fn a_code_and_its_transfer_go_through_a_socks5_proxy() {
    let world = World::new();
    let (_relay, server) = relay(&world);
    let proxy = Proxy::start(Speaks::Socks5);
    let url = format!("socks5://{}", proxy.address);
    transfer(&world, &server, |command| {
        command.args(["--proxy", &url]);
    });
    // Each side to the relay, and to the rendezvous server there.
    let asked = proxy.asked();
    assert!(asked.len() >= 4 && asked.iter().all(|target| *target == server), "{asked:?}");
}

#[test]
fn the_environment_names_the_proxy_where_no_option_does() {
    let world = World::new();
    let (_relay, server) = relay(&world);
    let proxy = Proxy::start(Speaks::Http);
    let url = format!("http://{}", proxy.address);
    transfer(&world, &server, |command| {
        command.env("ALL_PROXY", &url);
    });
    let asked = proxy.asked();
    assert!(asked.len() >= 4 && asked.iter().all(|target| *target == server), "{asked:?}");
}

#[test]
fn the_doctor_tries_relay_and_rendezvous_through_the_proxy() {
    let world = World::new();
    let (_relay, server) = relay(&world);
    let proxy = Proxy::start(Speaks::Socks5);
    let url = format!("socks5://{}", proxy.address);
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--relay", &server, "--proxy", &url]);
    let outcome = Process::start("doctor", &mut command).finish();
    outcome.expect_exit(0);
    for name in ["relay", "rendezvous"] {
        let check = outcome.all("check").find(|check| check["name"] == name).unwrap();
        let through = format!("through {url}");
        assert!(check["found"].as_str().unwrap().contains(&through), "{check}");
    }
    assert_eq!(proxy.asked(), [&*server, &*server]);
}

#[test]
fn what_names_no_proxy_is_said_without_its_password() {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1);
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
