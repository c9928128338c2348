//! Routers that lose their mappings, change their address, or disappear.

use std::net::Ipv4Addr;
use std::time::Duration;

use wraith_portmap::{Refusal, Status, Unmapped};

use crate::router::{
    EXTERNAL, ProtocolSupport, Router, RouterState, map_for_another_client, outcome,
};

fn pcp(router: &mut RouterState) {
    router.pcp = ProtocolSupport::Supported;
}

fn nat_pmp(router: &mut RouterState) {
    (router.pcp, router.nat_pmp) = (ProtocolSupport::Unsupported, ProtocolSupport::Supported);
}

fn upnp(router: &mut RouterState) {
    (router.pcp, router.nat_pmp, router.igd) =
        (ProtocolSupport::Unsupported, ProtocolSupport::Unsupported, ProtocolSupport::Supported);
}

#[tokio::test]
async fn a_mapping_is_restored_after_a_router_restart() {
    for with in [pcp, nat_pmp, upnp] {
        let router = Router::start(with).await;
        let mapping = router.request(Duration::from_millis(10));
        let before = outcome(&mapping).await;
        router.state().mappings.clear();
        while router.state().mappings.is_empty() {
            router.next_request().await;
        }
        assert_eq!(*mapping.status().borrow(), before, "it has the same port as before");
    }
}

#[tokio::test]
async fn a_port_taken_by_another_client_is_replaced() {
    let router = Router::start(pcp).await;
    let mapping = router.request_once();
    let before = outcome(&mapping).await.external().unwrap();
    {
        let mut state = router.state();
        state.mappings.clear();
        map_for_another_client(&mut state, before.port());
    }
    let mut status = mapping.status();
    status.mark_unchanged();
    mapping.refresh();
    status.changed().await.unwrap();
    let after = status.borrow().external().unwrap();
    assert_ne!(after.port(), before.port());
    assert_eq!(after.ip(), EXTERNAL);
}

#[tokio::test]
async fn a_new_external_address_is_reported() {
    for with in [pcp, nat_pmp, upnp] {
        let router = Router::start(with).await;
        let mapping = router.request_once();
        outcome(&mapping).await;
        let mut status = mapping.status();
        status.mark_unchanged();
        let moved = Ipv4Addr::new(198, 51, 100, 8);
        router.state().external_ip = moved;
        mapping.refresh();
        status.changed().await.unwrap();
        assert_eq!(status.borrow().external().unwrap().ip(), moved);
    }
}

#[tokio::test]
async fn a_permanently_refused_renewal_ends_the_mapping() {
    let router = Router::start(pcp).await;
    let mapping = router.request(Duration::from_millis(10));
    outcome(&mapping).await;
    {
        let mut state = router.state();
        (state.pcp, state.nat_pmp) = (ProtocolSupport::Unsupported, ProtocolSupport::Unsupported);
    }
    let mut status = mapping.status();
    let end = status.wait_for(|status| matches!(status, Status::Unmapped(_))).await.unwrap();
    let Status::Unmapped(why) = &*end else { unreachable!() };
    let Unmapped::Refused(refusals) = &**why else { panic!("{why}") };
    assert_eq!(refusals[0].1, Refusal::Unsupported, "{why}");
}

#[tokio::test]
async fn a_retry_finds_a_router_that_starts_to_answer() {
    let router = Router::start(|router| {
        (router.pcp, router.nat_pmp) = (ProtocolSupport::Unsupported, ProtocolSupport::Unsupported);
    })
    .await;
    let mapping = router.request_once();
    assert!(matches!(outcome(&mapping).await, Status::Unmapped(_)));
    router.state().pcp = ProtocolSupport::Supported;
    mapping.refresh();
    let mut status = mapping.status();
    status.wait_for(|status| status.external().is_some()).await.unwrap();
}
