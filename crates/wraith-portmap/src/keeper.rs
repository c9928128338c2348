//! Keeps one mapping: asks, renews, notices that it is gone, asks again, and gives it back at the end.
//!
//! Why there is no look at the router's epoch (RFC 6887 §8.5): it tells whether a router lost its state, and all that one does
//! then is to ask again. We ask again every [`Settings::recheck`] anyway.
//!
//! Invariant: what is published as mapped was granted, and was confirmed no longer ago than its lifetime.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::gateway::Gateway;
use crate::grant::Grant;
use crate::router::Mapping;
use crate::{Settings, Status, Unmapped};

/// Of a whole request by all protocols: their own limits add up to less, so this ends only what nobody foresaw.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Of a renewal, likewise.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a request or renewal under way when it is no longer wanted: a router that speaks answers in this time. What is granted
/// later ends with its lifetime.
const LAST_STEP_TIMEOUT: Duration = Duration::from_millis(500);
/// Of a removal: what is not removed by then ends with its lifetime.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Renewals in a row that may fail before the mapping counts as lost: a datagram each to a busy router may be.
const RENEWALS_LOST_MAX: u32 = 2;
/// Least time between two requests, whatever the router grants.
const REST: Duration = Duration::from_secs(10);

/// The task behind a [`PortMapping`](crate::PortMapping).
#[derive(Debug)]
pub(crate) struct Keeper {
    local_port: NonZeroU16,
    settings: Settings,
    publish: watch::Sender<Status>,
    refresh: Arc<Notify>,
    /// The external port that we had: whoever knows it still finds us there if it can be had again.
    wish: Option<NonZeroU16>,
    held: Option<Held>,
    /// Requests in a row that brought nothing.
    failures: u32,
}

#[derive(Debug)]
struct Held {
    mapping: Mapping,
    gateway: Gateway,
    grant: Grant,
    expires: Instant,
    renewals_lost: u32,
}

impl Keeper {
    pub fn new(
        local_port: NonZeroU16,
        settings: Settings,
        publish: watch::Sender<Status>,
        refresh: Arc<Notify>,
    ) -> Self {
        Self { local_port, settings, publish, refresh, wish: None, held: None, failures: 0 }
    }

    /// Runs until the other end of `stopped` is gone.
    pub async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let wake = {
                let step = self.step();
                tokio::pin!(step);
                tokio::select! {
                    _ = &mut stopped => {
                        // What is being granted right now could not be given back otherwise.
                        let _ = timeout(LAST_STEP_TIMEOUT, step).await;
                        break;
                    }
                    wake = &mut step => wake,
                }
            };
            tokio::select! {
                _ = &mut stopped => break,
                () = self.refresh.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
        self.give_back().await;
    }

    /// One request or renewal; when the next is due.
    async fn step(&mut self) -> Instant {
        let gateway = self.settings.gateway.or_else(Gateway::of_default_route);
        if self.held.as_ref().is_some_and(|held| gateway.is_some_and(|now| now != held.gateway)) {
            // Another network. The router there knows nothing of it, and the one that does may be out of reach.
            tracing::debug!("port mapping: the gateway has changed");
            self.give_back().await;
        }
        match (&mut self.held, gateway) {
            (Some(_), _) => self.renew().await,
            (None, Some(gateway)) => self.request(gateway).await,
            (None, None) => self.failed(Unmapped::NoGateway),
        }
    }

    async fn request(&mut self, gateway: Gateway) -> Instant {
        let request = Mapping::request(gateway, self.settings.search, self.local_port, self.wish);
        match timeout(REQUEST_TIMEOUT, request).await {
            Err(_) => self.failed(Unmapped::Refused(Vec::new())),
            Ok(Err(why)) => self.failed(why),
            Ok(Ok((mapping, grant))) => {
                self.failures = 0;
                let expires = Instant::now() + grant.lifetime;
                self.held = Some(Held { mapping, gateway, grant, expires, renewals_lost: 0 });
                self.granted(grant)
            }
        }
    }

    async fn renew(&mut self) -> Instant {
        let Some(held) = &mut self.held else { return Instant::now() };
        if let Ok(Ok(grant)) = timeout(RENEWAL_TIMEOUT, held.mapping.renew()).await {
            held.grant = grant;
            held.expires = Instant::now() + grant.lifetime;
            held.renewals_lost = 0;
            return self.granted(grant);
        }
        held.renewals_lost += 1;
        let now = Instant::now();
        if held.renewals_lost < RENEWALS_LOST_MAX && now < held.expires {
            return (now + self.settings.recheck.min(REST)).min(held.expires);
        }
        tracing::debug!("port mapping: lost");
        self.give_back().await;
        self.publish.send_replace(Status::Asking);
        now
    }

    /// Tells what was granted; when it is to be renewed.
    fn granted(&mut self, grant: Grant) -> Instant {
        let Some(held) = &self.held else { return Instant::now() };
        let protocol = held.mapping.protocol();
        self.wish = NonZeroU16::new(grant.external.port());
        self.tell(Status::Mapped { external: grant.external, protocol });
        // RFC 6886 §3.3: half of the lifetime.
        Instant::now() + (grant.lifetime / 2).min(self.settings.recheck)
    }

    /// Tells that there is none; when to ask again.
    fn failed(&mut self, why: Unmapped) -> Instant {
        self.tell(Status::Unmapped(Arc::new(why)));
        let doublings = self.failures.min(16);
        self.failures += 1;
        let wait = self.settings.retry.saturating_mul(1 << doublings);
        Instant::now() + wait.min(self.settings.retry_max)
    }

    fn tell(&self, status: Status) {
        self.publish.send_if_modified(|told| {
            let news = *told != status;
            if news {
                // Addresses stay out of logs.
                let mapped = matches!(status, Status::Mapped { .. });
                tracing::debug!(mapped, "port mapping");
                *told = status;
            }
            news
        });
    }

    async fn give_back(&mut self) {
        // Let go of only afterwards: who is stopped in the middle of this begins it again.
        if let Some(held) = &mut self.held {
            let _ = timeout(REMOVAL_TIMEOUT, held.mapping.remove()).await;
        }
        self.held = None;
    }
}
