//! The life cycle of one mapping: request, renew, detect loss, request again, remove.
//!
//! The router's epoch (RFC 6887 §8.5) is not evaluated. The epoch shows that a router lost its
//! state. The only possible reaction is a new request, which is sent every [`Settings::recheck`]
//! anyway.
//!
//! Invariant: a mapping is published only while it is granted and was confirmed within its
//! lifetime.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::gateway::Gateway;
use crate::grant::Grant;
use crate::router::Mapping;
use crate::{Settings, Status, Unmapped};

/// Limit of a whole request by all protocols. The protocols' own limits add up to less; this one
/// covers unforeseen cases.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of a renewal, likewise.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of a request or renewal that is under way at shutdown. A working router answers within
/// this time. A later grant ends with its lifetime.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// Limit of a removal. A mapping that is not removed by then ends with its lifetime.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Consecutive renewals that may fail before the mapping is considered lost. A busy router may drop
/// a datagram.
const RENEWALS_LOST_MAX: u32 = 2;
/// Least time between two requests, whatever lifetime the router grants.
const REQUEST_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Task behind a [`PortMapping`](crate::PortMapping).
#[derive(Debug)]
pub(crate) struct MappingTask {
    local_port: NonZeroU16,
    settings: Settings,
    publish: watch::Sender<Status>,
    refresh: Arc<Notify>,
    /// The previous external port. Peers that have this port can still reach this machine if the
    /// router grants the port again.
    preferred_port: Option<NonZeroU16>,
    active: Option<ActiveMapping>,
    /// Number of consecutive failed requests.
    failures: u32,
}

#[derive(Debug)]
struct ActiveMapping {
    mapping: Mapping,
    gateway: Gateway,
    grant: Grant,
    expires: Instant,
    renewals_lost: u32,
}

impl MappingTask {
    pub fn new(
        local_port: NonZeroU16,
        settings: Settings,
        publish: watch::Sender<Status>,
        refresh: Arc<Notify>,
    ) -> Self {
        Self {
            local_port,
            settings,
            publish,
            refresh,
            preferred_port: None,
            active: None,
            failures: 0,
        }
    }

    /// Runs until the sender of `stopped` is dropped.
    pub async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let wake = {
                let request_or_renew = self.request_or_renew();
                tokio::pin!(request_or_renew);
                tokio::select! {
                    _ = &mut stopped => {
                        // A grant that is under way could not be removed otherwise.
                        let _ = timeout(SHUTDOWN_TIMEOUT, request_or_renew).await;
                        break;
                    }
                    wake = &mut request_or_renew => wake,
                }
            };
            tokio::select! {
                _ = &mut stopped => break,
                () = self.refresh.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
        self.remove_mapping().await;
    }

    /// Sends one request or renewal. Returns the time of the next.
    async fn request_or_renew(&mut self) -> Instant {
        let gateway = self.settings.gateway.or_else(Gateway::of_default_route);
        if self
            .active
            .as_ref()
            .is_some_and(|active| gateway.is_some_and(|now| now != active.gateway))
        {
            // The machine moved to another network. The new router has no such mapping, and the old
            // one may be out of reach.
            tracing::debug!("port mapping: the gateway has changed");
            self.remove_mapping().await;
        }
        match (&mut self.active, gateway) {
            (Some(_), _) => self.renew().await,
            (None, Some(gateway)) => self.request(gateway).await,
            (None, None) => self.on_failure(Unmapped::NoGateway),
        }
    }

    async fn request(&mut self, gateway: Gateway) -> Instant {
        let request =
            Mapping::request(gateway, self.settings.search, self.local_port, self.preferred_port);
        match timeout(REQUEST_TIMEOUT, request).await {
            Err(_) => self.on_failure(Unmapped::Refused(Vec::new())),
            Ok(Err(why)) => self.on_failure(why),
            Ok(Ok((mapping, grant))) => {
                self.failures = 0;
                let expires = Instant::now() + grant.lifetime;
                self.active =
                    Some(ActiveMapping { mapping, gateway, grant, expires, renewals_lost: 0 });
                self.on_grant(grant)
            }
        }
    }

    async fn renew(&mut self) -> Instant {
        let Some(active) = &mut self.active else { return Instant::now() };
        if let Ok(Ok(grant)) = timeout(RENEWAL_TIMEOUT, active.mapping.renew()).await {
            active.grant = grant;
            active.expires = Instant::now() + grant.lifetime;
            active.renewals_lost = 0;
            return self.on_grant(grant);
        }
        active.renewals_lost += 1;
        let now = Instant::now();
        if active.renewals_lost < RENEWALS_LOST_MAX && now < active.expires {
            return (now + self.settings.recheck.min(REQUEST_INTERVAL_MIN)).min(active.expires);
        }
        tracing::debug!("port mapping: lost");
        self.remove_mapping().await;
        self.publish.send_replace(Status::Requesting);
        now
    }

    /// Publishes a grant. Returns the time of the renewal.
    fn on_grant(&mut self, grant: Grant) -> Instant {
        let Some(active) = &self.active else { return Instant::now() };
        let protocol = active.mapping.protocol();
        self.preferred_port = NonZeroU16::new(grant.external.port());
        self.publish_status(Status::Mapped { external: grant.external, protocol });
        // Half of the lifetime (RFC 6886 §3.3).
        Instant::now() + (grant.lifetime / 2).min(self.settings.recheck)
    }

    /// Publishes the failure. Returns the time of the next request.
    fn on_failure(&mut self, why: Unmapped) -> Instant {
        self.publish_status(Status::Unmapped(Arc::new(why)));
        let doublings = self.failures.min(16);
        self.failures += 1;
        let wait = self.settings.retry.saturating_mul(1 << doublings);
        Instant::now() + wait.min(self.settings.retry_max)
    }

    fn publish_status(&self, status: Status) {
        self.publish.send_if_modified(|published| {
            let changed = *published != status;
            if changed {
                // Addresses stay out of logs.
                let mapped = matches!(status, Status::Mapped { .. });
                tracing::debug!(mapped, "port mapping");
                *published = status;
            }
            changed
        });
    }

    async fn remove_mapping(&mut self) {
        // `active` is cleared only after the removal, so a cancelled call can be repeated.
        if let Some(active) = &mut self.active {
            let _ = timeout(REMOVAL_TIMEOUT, active.mapping.remove()).await;
        }
        self.active = None;
    }
}
