//! Whose packets a creator of a code on the local network answers, and its nameplate.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;

use socket2::SockRef;
use tokio::sync::Barrier;
use wraith_discovery::lan::{GROUP_V4, PORT, open, seal};
use wraith_discovery::message::Message;
use wraith_discovery::pake::Joiner;
use wraith_discovery::{CodeEvent, Lan, PlaceError, Places, TicketSide, Topic};

use super::support::cable::{self, Cable};
use super::support::{
    fetched, loopback, next, nowhere, offered, other_words, own_network, skipped,
};

/// A host that sends packets to a creator by itself.
struct Host(UdpSocket);

impl Host {
    fn new() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    /// Sends a packet of the conversation that begins with `joiner`'s hello.
    fn send(&self, to: SocketAddr, nameplate: u32, joiner: &Joiner, message: &[u8]) {
        // A salt must only be new.
        let mut salt: [u8; 16] = *joiner.hello().first_chunk().unwrap();
        salt[0] = message.len() as u8;
        let packet = seal(nameplate, salt, &joiner.hello(), message).unwrap();
        self.0.send_to(&packet, to).unwrap();
    }

    /// Returns the next message and its sender, or `None` if there is none.
    fn received(&self, nameplate: u32) -> Option<(Message, SocketAddr)> {
        let mut bytes = [0; 1000];
        match self.0.recv_from(&mut bytes) {
            Ok((len, from)) => {
                let (_, message) = open(nameplate, &bytes[..len]).unwrap();
                Some((Message::decode(&message).unwrap(), from))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn only_an_opening_to_the_group_gets_an_answer() {
    let _network = own_network();
    let mut sender = offered(&loopback(), 1).await;
    let (code, nameplate) = (sender.code().clone(), sender.code().nameplate());
    let (group, own) = ((GROUP_V4, PORT).into(), (Ipv4Addr::LOCALHOST, PORT).into());
    let (near, far) = (Host::new(), Host::new());
    let stranger = || Joiner::new(&other_words(&code), TicketSide::Creator);
    let (known, unknown) = (stranger(), stranger());
    far.send(own, nameplate, &unknown, &[]);
    near.send(group, nameplate, &known, &[]);
    let (answer, creator) = loop {
        // Both packets were sent to one socket, so the first was handled before.
        tokio::task::yield_now().await;
        if let Some(answer) = near.received(nameplate) {
            break answer;
        }
    };
    assert!(matches!(answer, Message::Answer(_)), "{answer:?}");
    assert_eq!(far.received(nameplate), None, "to {own}");
    // Nor does the port from which the creator answers take an opening, or a guess without one.
    far.send(creator, nameplate, &unknown, &[]);
    far.send(creator, nameplate, &unknown, &Message::Proof([1; 80]).encode());
    near.send(creator, nameplate, &known, &Message::Ack.encode());
    near.send(group, nameplate, &stranger(), &[]);
    while near.received(nameplate).is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(far.received(nameplate), None, "to {creator}");
    // The code is as good as before.
    assert_eq!(fetched(&code, &loopback()).await.unwrap().ticket.as_slice(), b"ticket");
    assert!(matches!(next(&mut sender).await, CodeEvent::Used { .. }));
}

#[tokio::test]
async fn codes_on_one_machine_never_share_a_nameplate() {
    let _network = own_network();
    let mut nameplates = Vec::new();
    let mut senders = Vec::new();
    // By chance about 7 of them would share a nameplate.
    for _ in 0..120 {
        let sender = offered(&loopback(), 1).await;
        nameplates.push(sender.code().nameplate());
        senders.push(sender);
    }
    nameplates.sort_unstable();
    nameplates.dedup();
    assert_eq!(nameplates.len(), senders.len());
}

/// Claims one nameplate at both ends of a cable at the same time. Returns whether each end got it.
fn claimed_at_both_ends(cable: &Cable) -> [bool; 2] {
    let (begin, done) = (Barrier::new(2), Barrier::new(2));
    let claim = async |end| {
        cable::enter(cable.name(end));
        let places = Places { lan: Lan::All, ..nowhere() };
        begin.wait().await;
        let topic = Topic::Nameplate { nameplate: 7, exact: true };
        match places.all()[0].announce(topic).await {
            Ok(mut announcement) => {
                tokio::select! {
                    () = announcement.hold() => unreachable!("it holds for ever"),
                    _ = done.wait() => true,
                }
            }
            Err(why) => {
                assert_eq!(why, PlaceError::Taken);
                done.wait().await;
                false
            }
        }
    };
    let claim = &claim;
    thread::scope(|scope| {
        let claims = [0, 1].map(|end| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(claim(end))
            })
        });
        claims.map(|claim| claim.join().unwrap())
    })
}

#[test]
fn of_two_machines_that_claim_one_nameplate_exactly_one_gets_it() {
    let (Some(v4), Some(v6)) =
        (Cable::new(Some(["10.75.0.1/24", "10.75.0.2/24"])), Cable::new(None))
    else {
        return skipped("network namespaces need root and ip");
    };
    v6.wait_for_ipv6();
    for _ in 0..5 {
        for cable in [&v4, &v6] {
            let [one, other] = claimed_at_both_ends(cable);
            assert!(one != other, "both have it: {}", one && other);
        }
    }
}
