//! Each protocol grants a port and releases it.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use wraith_portmap::{Protocol, Status};

use crate::router::{
    EXTERNAL, LOCAL_PORT, ProtocolSupport, Router, RouterState, map_for_another_client, outcome,
};

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
async fn a_pcp_router_grants_a_mapping() {
    granted(Protocol::Pcp, |router| router.pcp = ProtocolSupport::Supported).await;
}

#[tokio::test]
async fn nat_pmp_is_used_if_the_router_refuses_pcp() {
    granted(Protocol::NatPmp, |router| {
        router.pcp = ProtocolSupport::Unsupported;
        router.nat_pmp = ProtocolSupport::Supported;
    })
    .await;
}

// Waits 1.75 s for the three PCP requests to time out.
#[tokio::test]
async fn nat_pmp_is_used_if_pcp_is_not_answered() {
    granted(Protocol::NatPmp, |router| router.nat_pmp = ProtocolSupport::Supported).await;
}

// Waits the same 1.75 s.
#[tokio::test]
async fn nat_pmp_is_used_if_upnp_refuses() {
    granted(Protocol::NatPmp, |router| {
        (router.nat_pmp, router.igd, router.refuses) =
            (ProtocolSupport::Supported, ProtocolSupport::Supported, true);
    })
    .await;
}

fn upnp_only(router: &mut RouterState) {
    (router.pcp, router.nat_pmp, router.igd) =
        (ProtocolSupport::Unsupported, ProtocolSupport::Unsupported, ProtocolSupport::Supported);
}

#[tokio::test]
async fn a_upnp_router_grants_a_mapping() {
    let external = granted(Protocol::UpnpIgd, upnp_only).await;
    assert_eq!(external.port(), LOCAL_PORT.get(), "the port is kept where it is free");
}

#[tokio::test]
async fn a_upnp_router_may_support_only_permanent_mappings() {
    granted(Protocol::UpnpIgd, |router| {
        upnp_only(router);
        router.permanent_only = true;
    })
    .await;
}

#[tokio::test]
async fn upnp_uses_another_port_if_the_port_is_taken() {
    let external = granted(Protocol::UpnpIgd, |router| {
        upnp_only(router);
        map_for_another_client(router, LOCAL_PORT.get());
    })
    .await;
    assert_ne!(external.port(), LOCAL_PORT.get());
}

#[tokio::test]
async fn a_router_with_all_protocols_gets_one_mapping() {
    let router = Router::start(|router| {
        (router.pcp, router.nat_pmp, router.igd) =
            (ProtocolSupport::Supported, ProtocolSupport::Supported, ProtocolSupport::Supported);
    })
    .await;
    let mapping = router.request_once();
    assert!(matches!(outcome(&mapping).await, Status::Mapped { .. }));
    assert_eq!(router.state().mappings.len(), 1);
    mapping.release().await;
    assert!(router.state().mappings.is_empty());
}

#[tokio::test]
async fn a_cancelled_request_leaves_no_mapping() {
    let pcp: fn(&mut RouterState) = |router| router.pcp = ProtocolSupport::Supported;
    // The second UPnP exchange requests the address, the third the mapping.
    for (with, exchanges) in [(pcp, 1), (upnp_only, 2), (upnp_only, 3)] {
        let router = Router::start(with).await;
        let mapping = router.request_once();
        router.wait_for_requests(exchanges).await;
        mapping.release().await;
        assert!(router.state().mappings.is_empty());
    }
}

#[tokio::test]
async fn a_dropped_mapping_is_removed_in_the_background() {
    let router = Router::start(|router| router.pcp = ProtocolSupport::Supported).await;
    let mapping = router.request_once();
    outcome(&mapping).await;
    assert_eq!(router.state().mappings.len(), 1);
    drop(mapping);
    while !router.state().mappings.is_empty() {
        router.next_request().await;
    }
}
