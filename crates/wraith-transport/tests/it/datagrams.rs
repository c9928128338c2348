//! Unreliable datagrams over real sockets, up to the reported maximum size.

use std::net::{IpAddr, Ipv6Addr};

use wraith_transport::{Bytes, DatagramError};

use crate::support::{Pattern, V4, pair, run};

#[test]
fn a_datagram_of_the_largest_size_arrives_whole_and_a_larger_one_is_refused() {
    for ip in [V4, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let pair = pair(ip);
        let pattern = Pattern::new(3);
        // Loss is unlikely but possible: send until one arrives.
        for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
            let max = from.max_datagram_len();
            assert!(max > 1100, "{max}");
            let largest = pattern.slice(0, max);
            from.send_datagram(largest.clone()).unwrap();
            assert_eq!(run(to.read_datagram()).unwrap(), largest);
            // The path MTU may have grown in the meantime.
            let refused = from.send_datagram(Bytes::from(vec![0; 65_536])).unwrap_err();
            assert!(matches!(refused, DatagramError::TooLarge { max: now } if now >= max));
        }
    }
}

#[test]
fn the_largest_size_grows_with_what_the_path_carries() {
    let pair = pair(V4);
    let at_first = pair.client.max_datagram_len();
    let (mut send, mut recv) = run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"!").await.unwrap();
        let (_send, recv) = pair.server.accept_stream().await.unwrap();
        (send, recv)
    });
    // Path MTU probes need traffic.
    let pattern = Pattern::new(4);
    run(async {
        let mut byte = [0];
        recv.read_exact(&mut byte).await.unwrap();
        while pair.client.max_datagram_len() <= 10_000 {
            send.write_chunks([pattern.slice(0, 1000)]).await.unwrap();
            recv.read_exact(&mut [0; 1000]).await.unwrap();
        }
    });
    let max = pair.client.max_datagram_len();
    assert!(max > at_first);
    let large = pattern.slice(7, max);
    pair.client.send_datagram(large.clone()).unwrap();
    assert_eq!(run(pair.server.read_datagram()).unwrap(), large);
}

#[test]
fn a_burst_of_datagrams_arrives_in_order() {
    let pair = pair(V4);
    for round in 0..100_u32 {
        let numbers = round * 10..round * 10 + 10;
        for number in numbers.clone() {
            let datagram = Bytes::copy_from_slice(&number.to_be_bytes());
            pair.client.send_datagram(datagram).unwrap();
        }
        for number in numbers {
            assert_eq!(*run(pair.server.read_datagram()).unwrap(), number.to_be_bytes());
        }
    }
}
