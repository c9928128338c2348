//! Routers and impostors that lie, stall or send garbage.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpListener;
use wraith_portmap::{Protocol, Refusal, Status, Unmapped};

use crate::router::{ProtocolSupport, Router, RouterState, outcome};

/// Returns the reason why this router granted no mapping by `by`. No mapping may stay behind.
async fn refused(by: Protocol, with: impl FnOnce(&mut RouterState)) -> Refusal {
    let router = Router::start(with).await;
    let mapping = router.request_once();
    let Status::Unmapped(why) = outcome(&mapping).await else { panic!("it was believed") };
    let Unmapped::Refused(refusals) = &*why else { panic!("{why}") };
    assert!(router.state().mappings.is_empty(), "what is not believed is given back");
    refusals.iter().find(|(protocol, _)| *protocol == by).expect("it was tried").1
}

fn enable_only(by: Protocol, router: &mut RouterState) {
    (router.pcp, router.nat_pmp) = (ProtocolSupport::Unsupported, ProtocolSupport::Unsupported);
    match by {
        Protocol::Pcp => router.pcp = ProtocolSupport::Supported,
        Protocol::NatPmp => router.nat_pmp = ProtocolSupport::Supported,
        Protocol::UpnpIgd => router.igd = ProtocolSupport::Supported,
    }
}

#[tokio::test]
async fn a_non_global_external_address_is_rejected() {
    for by in [Protocol::Pcp, Protocol::NatPmp, Protocol::UpnpIgd] {
        for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(100, 64, 3, 4)] {
            let refusal = refused(by, |router| {
                enable_only(by, router);
                router.external_ip = ip;
            })
            .await;
            assert_eq!(refusal, Refusal::NotGlobal(ip), "{by}");
        }
    }
}

#[tokio::test]
async fn port_zero_and_too_short_lifetimes_are_rejected() {
    for by in [Protocol::Pcp, Protocol::NatPmp] {
        let lie = |lie: fn(&mut RouterState)| {
            refused(by, move |router| {
                enable_only(by, router);
                lie(router);
            })
        };
        let brief = lie(|router| router.lifetime = Some(1)).await;
        assert_eq!(brief, Refusal::TooBrief(Duration::from_secs(1)), "{by}");
        let zero = lie(|router| router.lifetime = Some(0)).await;
        assert_eq!(zero, Refusal::TooBrief(Duration::ZERO), "{by}");
    }
}

#[tokio::test]
async fn port_zero_is_rejected() {
    for by in [Protocol::Pcp, Protocol::NatPmp] {
        let router = Router::start(|router| {
            enable_only(by, router);
            router.port_said = Some(0);
        })
        .await;
        let mapping = router.request_once();
        let Status::Unmapped(why) = outcome(&mapping).await else { panic!("it was believed") };
        let Unmapped::Refused(refusals) = &*why else { panic!("{why}") };
        assert!(refusals.contains(&(by, Refusal::Malformed)), "{why}");
    }
}

#[tokio::test]
async fn answers_of_any_bytes_are_refused() {
    for bytes in [vec![], vec![0], vec![2; 7], vec![0x82; 24], vec![0; 60], vec![0xff; 1400]] {
        let by = Protocol::Pcp;
        let refusal = refused(by, |router| {
            router.pcp = ProtocolSupport::Bytes(bytes.clone());
            router.nat_pmp = ProtocolSupport::Bytes(bytes.clone());
        })
        .await;
        assert!(
            matches!(refusal, Refusal::Malformed | Refusal::Unsupported),
            "{bytes:?}: {refusal}"
        );
    }
}

#[tokio::test]
async fn a_description_outside_the_router_is_not_fetched() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("http://{}/root.xml", elsewhere.local_addr().unwrap());
    let refusal = refused(Protocol::UpnpIgd, |router| {
        enable_only(Protocol::UpnpIgd, router);
        router.location = Some(location);
    })
    .await;
    assert_eq!(refusal, Refusal::NoAnswer);
    let accepted = tokio::select! {
        biased;
        _ = elsewhere.accept() => true,
        () = std::future::ready(()) => false,
    };
    assert!(!accepted, "somebody was asked because the router said so");
}

// Waits 3 s for the exchange to time out.
#[tokio::test]
async fn a_device_that_never_answers_is_given_up() {
    let refusal = refused(Protocol::UpnpIgd, |router| {
        enable_only(Protocol::UpnpIgd, router);
        router.stalls = true;
    })
    .await;
    assert_eq!(refusal, Refusal::NoAnswer);
}
