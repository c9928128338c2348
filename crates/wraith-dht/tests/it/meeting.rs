//! Two peers that share nothing but the DHT.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::timeout;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::Reach;
use wraith_discovery::contact::{
    CallOptions, ContactEvent, ContactPair, ContactSearch, SearchEvent, listen, search_with_call,
};
use wraith_discovery::{
    CodeEvent, CodeOptions, Lan, PlaceName, Places, TicketSide, TimeLimit, announce_long, join,
};
use zeroize::Zeroizing;

use super::support::{PATIENCE, client};

fn places() -> Places {
    Places { lan: Lan::Off, stores: vec![Arc::new(client())], ..Places::default() }
}

fn address(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], n))
}

async fn found_at(search: &mut ContactSearch, address: SocketAddr) {
    let found = async {
        while !matches!(search.next().await, Some(SearchEvent::Found(PlaceName::Dht, reach, _)) if reach.addresses() == [address])
        {
        }
    };
    timeout(PATIENCE, found).await.unwrap();
}

#[tokio::test]
async fn a_contact_is_found_at_its_new_address_and_gets_the_call() {
    let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]));
    let at = Arc::new(Mutex::new(address(1)));
    let ours = Arc::clone(&at);
    let make = Box::new(move |_| vec![*ours.lock().unwrap()].into());
    let mut listener = listen(&places(), make).await;
    listener.set_contacts(vec![ContactPair::new(&a, b.node_id()).unwrap()]);

    let reach = Box::new(|_| Reach::from(vec![address(9)]));
    let calling = CallOptions { reach, punch_secret: [7; 32] };
    let pair = ContactPair::new(&b, a.node_id()).unwrap();
    let mut search = search_with_call(&pair, &places(), Some(calling));
    search.publish_call();
    found_at(&mut search, address(1)).await;
    let event = timeout(PATIENCE, listener.next_event()).await.unwrap();
    let Some(ContactEvent::PunchRequest(PlaceName::Dht, call)) = event else { panic!("{event:?}") };
    assert_eq!((call.peer, call.punch_secret), (b.node_id(), [7; 32]));
    assert_eq!(call.reach.addresses(), [address(9)]);
}

#[tokio::test]
async fn a_long_code_brings_the_ticket() {
    let options = CodeOptions::new(TicketSide::Creator, Duration::from_secs(600));
    let ticket = Box::new(|_, _| Some(Zeroizing::new(b"ticket".to_vec())));
    let own = NodeId([1; 32]);
    let mut sender = announce_long(&places(), options, own, ticket, Box::new(|_| Reach::default()))
        .await
        .unwrap();
    assert_eq!(sender.places(), [PlaceName::Dht]);
    let limit = TimeLimit::new(PATIENCE);
    let joiner = NodeId([2; 32]);
    let met = join(sender.code(), joiner, None, &places(), limit, Box::new(|| true), None).await;
    assert_eq!(&met.unwrap().ticket[..], b"ticket");
    let used =
        async { while !matches!(sender.next_event().await, Some(CodeEvent::Used { .. })) {} };
    timeout(PATIENCE, used).await.unwrap();
}
