//! Datagrams from strangers: the port does not answer them, and they do not affect the transfer.

use std::net::UdpSocket;

use crate::support::random::Random;
use crate::support::{expect_arrival, offering, tree};
use wraith_discovery::Ticket;

#[test]
fn garbage_gets_no_answer_and_does_no_harm() {
    let (world, film, sender, ticket) = offering(5_000_000, &[]);
    let address = ticket.parse::<Ticket>().unwrap().addresses()[0];

    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = Random::fresh();
    for _ in 0..2000 {
        let size = random.below(1500) as usize;
        stranger.send_to(&tree::noise(random.below(u64::MAX), size), address).unwrap();
    }
    expect_arrival(world.receive(&ticket), sender, &film, &world.target());

    stranger.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2000];
    let answer = stranger.recv_from(&mut buffer);
    assert_eq!(
        answer.unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "a stranger got an answer"
    );
}
