//! Each protocol grants a port and releases it.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use wraith_portmap::{Protocol, Status};

use crate::router::{EXTERNAL, LOCAL_PORT, Router, RouterState, Speaks, of_another, outcome};

const INSIDE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, LOCAL_PORT.get());

/// Checks that the router holds the granted mapping to this machine, and that a release removes it.
async fn granted(by: Protocol, with: impl FnOnce(&mut RouterState)) -> SocketAddrV4 {
    let router = Router::start(with).await;
    assert_eq!(router.served(), 0, "nothing is sent before it is asked for");
    let mapping = router.request_once();
    let Status::Mapped { external, protocol } = outcome(&mapping).await else {
        panic!("{}", *mapping.status().borrow())
    };
    assert_eq!((*external.ip(), protocol), (EXTERNAL, by));
    assert_eq!(mapping.status().borrow().external(), Some(SocketAddr::V4(external)));
    assert_eq!(router.state().mappings[&external.port()].to, INSIDE);
    mapping.release().await;
    assert!(router.state().mappings.values().all(|entry| entry.to != INSIDE));
    external
}

#[tokio::test]
async fn by_pcp() {
    granted(Protocol::Pcp, |router| router.pcp = Speaks::Well).await;
}

#[tokio::test]
async fn by_nat_pmp_where_the_router_says_that_it_has_no_pcp() {
    granted(Protocol::NatPmp, |router| {
        router.pcp = Speaks::No;
        router.nat_pmp = Speaks::Well;
    })
    .await;
}

// Waits 1.75 s for the three PCP requests to time out.
#[tokio::test]
async fn by_nat_pmp_where_the_router_does_not_answer_to_pcp() {
    granted(Protocol::NatPmp, |router| router.nat_pmp = Speaks::Well).await;
}

// Waits the same 1.75 s.
#[tokio::test]
async fn by_nat_pmp_where_upnp_answers_first_and_refuses() {
    granted(Protocol::NatPmp, |router| {
        (router.nat_pmp, router.igd, router.refuses) = (Speaks::Well, Speaks::Well, true);
    })
    .await;
}

fn upnp_only(router: &mut RouterState) {
    (router.pcp, router.nat_pmp, router.igd) = (Speaks::No, Speaks::No, Speaks::Well);
}

#[tokio::test]
async fn by_upnp() {
    let external = granted(Protocol::UpnpIgd, upnp_only).await;
    assert_eq!(external.port(), LOCAL_PORT.get(), "the port is kept where it is free");
}

#[tokio::test]
async fn by_upnp_where_only_mappings_without_an_end_are_known() {
    granted(Protocol::UpnpIgd, |router| {
        upnp_only(router);
        router.permanent_only = true;
    })
    .await;
}

#[tokio::test]
async fn by_upnp_at_another_port_where_another_machine_has_it() {
    let external = granted(Protocol::UpnpIgd, |router| {
        upnp_only(router);
        of_another(router, LOCAL_PORT.get());
    })
    .await;
    assert_ne!(external.port(), LOCAL_PORT.get());
}

#[tokio::test]
async fn a_router_that_speaks_all_of_them_is_asked_for_one_mapping() {
    let router = Router::start(|router| {
        (router.pcp, router.nat_pmp, router.igd) = (Speaks::Well, Speaks::Well, Speaks::Well);
    })
    .await;
    let mapping = router.request_once();
    assert!(matches!(outcome(&mapping).await, Status::Mapped { .. }));
    assert_eq!(router.state().mappings.len(), 1);
    mapping.release().await;
    assert!(router.state().mappings.is_empty());
}

#[tokio::test]
async fn a_request_that_is_ended_in_the_middle_leaves_nothing_behind() {
    let pcp: fn(&mut RouterState) = |router| router.pcp = Speaks::Well;
    // The second UPnP exchange requests the address, the third the mapping.
    for (with, exchanges) in [(pcp, 1), (upnp_only, 2), (upnp_only, 3)] {
        let router = Router::start(with).await;
        let mapping = router.request_once();
        router.until_served(exchanges).await;
        mapping.release().await;
        assert!(router.state().mappings.is_empty());
    }
}

#[tokio::test]
async fn a_mapping_that_is_dropped_is_given_back_in_the_background() {
    let router = Router::start(|router| router.pcp = Speaks::Well).await;
    let mapping = router.request_once();
    outcome(&mapping).await;
    assert_eq!(router.state().mappings.len(), 1);
    drop(mapping);
    while !router.state().mappings.is_empty() {
        router.next_request().await;
    }
}
