//! Long codes, the joiner's side: finds the creator at all record stores.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::time::sleep;
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::keys::CodeKeys;
use super::message::{Join, Offer};
use crate::code::attempts::{
    Attempt, JoinError, JoinErrorKind, JoinSuccess, PlaceFailure, first_success,
};
use crate::code::{Code, MakeTicket, TicketSide};
use crate::contact::PunchRequest;
use crate::place::PlaceError;
use crate::places::Places;
use crate::reach::MakeReach;
use crate::reach::Reach;
use crate::record::content::{Content, Kind};
use crate::record::find::{LookupBackoff, RecordFinder};
use crate::record::hour::hours_to_search;
use crate::store::RecordStore;
use crate::suspension::TimeLimit;
use crate::wall_clock::unix_seconds;

/// Longest wait for the creator's reply. The creator looks every few seconds, and publishing takes
/// several more.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between repetitions of the join record, which another joiner may have overwritten.
const REPEAT_INTERVAL: Duration = Duration::from_secs(12);
/// Interval between searches for the creator's reply.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);
/// Lifetime of the join record in seconds.
const JOIN_LIFE_SECONDS: u64 = 180;

/// Same as [`crate::join`] for a long code. The joiner reveals no guess, because only a peer with
/// the words can answer. Such a code can therefore be tried again. `reach` returns the joiner's
/// addresses.
pub async fn join_long(
    code: &Code,
    own: NodeId,
    ticket: Option<MakeTicket>,
    places: &Places,
    limit: TimeLimit,
    reach: Option<MakeReach>,
) -> Result<JoinSuccess, JoinError> {
    let joiner = Arc::new(LongCodeJoiner { words: code.secret(), own, ticket, limit, reach });
    let mut attempts: Vec<Attempt> = Vec::new();
    for store in &places.stores {
        let (store, joiner) = (Arc::clone(store), Arc::clone(&joiner));
        attempts.push((store.place(), Box::pin(async move { attempt(store, &joiner).await })));
    }
    first_success(attempts).await
}

/// State shared by the attempts.
struct LongCodeJoiner {
    words: Zeroizing<String>,
    own: NodeId,
    ticket: Option<MakeTicket>,
    limit: TimeLimit,
    reach: Option<MakeReach>,
}

/// One hour of the code at a store.
struct JoinerHour {
    keys: CodeKeys,
    offers: RecordFinder,
}

/// The creator's offer and its addresses.
type FoundOffer = (Offer, Reach);

/// Runs the search at one store until the creator is met or success is impossible.
async fn attempt(
    store: Arc<dyn RecordStore>,
    joiner: &LongCodeJoiner,
) -> Result<JoinSuccess, PlaceFailure> {
    let mut last = PlaceFailure::from(JoinErrorKind::Nobody);
    let mut limit = joiner.limit.clone();
    let found = select! {
        biased;
        found = find_offer(&store, joiner, &mut last) => Some(found),
        () = limit.reached() => None,
    };
    let Some(found) = found else { return Err(last) };
    let (hour, found) = found?;
    Ok(request_admission(&store, joiner, hour, found).await?)
}

/// Searches until there is an offer. `last` receives the reason of the latest failure.
async fn find_offer(
    store: &Arc<dyn RecordStore>,
    joiner: &LongCodeJoiner,
    last: &mut PlaceFailure,
) -> Result<(JoinerHour, FoundOffer), PlaceFailure> {
    let (mut hours, mut backoff): (Vec<JoinerHour>, _) = (Vec::new(), LookupBackoff::default());
    loop {
        let wanted = hours_to_search(unix_seconds());
        hours.retain(|hour| wanted.contains(&hour.keys.hour));
        for wanted in wanted {
            let at = match hours.iter().position(|hour| hour.keys.hour == wanted) {
                Some(at) => at,
                None => {
                    hours.push(JoinerHour::new(store, joiner, wanted).await?);
                    hours.len() - 1
                }
            };
            match next_offer(&mut hours[at].offers).await {
                Ok(Some((offer, reach))) => match offer.ended {
                    // The offer was for this joiner, in an interrupted attempt.
                    Some(_) if joiner.is_admitted_by(&offer) => {
                        return Ok((hours.swap_remove(at), (offer, reach)));
                    }
                    Some(why) => return Err(JoinErrorKind::from(why).into()),
                    None if offer.side != joiner.side() => *last = JoinErrorKind::OtherKind.into(),
                    None => return Ok((hours.swap_remove(at), (offer, reach))),
                },
                Ok(None) => {}
                Err(why) => *last = why.into(),
            }
        }
        backoff.wait().await;
    }
}

/// Publishes the join record and waits for the result.
async fn request_admission(
    store: &Arc<dyn RecordStore>,
    joiner: &LongCodeJoiner,
    JoinerHour { keys, mut offers }: JoinerHour,
    (first, reach): FoundOffer,
) -> Result<JoinSuccess, JoinErrorKind> {
    let creator = first.creator;
    let ticket = match &joiner.ticket {
        Some(make) => make(creator, None).ok_or(JoinErrorKind::Used)?,
        None => Zeroizing::default(),
    };
    let join = Join { joiner: joiner.own, side: joiner.side(), ticket }.encode();
    if joiner.is_admitted_by(&first) {
        return Ok(success(&keys, store, joiner, (first, reach)));
    }
    let republishing = republish_join(Arc::clone(store), &keys, joiner, join);
    let reply = async {
        loop {
            match next_offer(&mut offers).await {
                // Another owner of the words may publish here; that is not this creator's offer.
                Ok(Some((offer, now))) if offer.creator == creator => {
                    if joiner.is_admitted_by(&offer) {
                        return Ok((offer, now));
                    }
                    if let Some(why) = offer.ended {
                        return Err(JoinErrorKind::from(why));
                    }
                }
                Ok(_) => {}
                Err(why) => debug!(%why, "offer lookup failed"),
            }
            sleep(LOOKUP_INTERVAL).await;
        }
    };
    let mut limit = TimeLimit::new(ANSWER_TIMEOUT);
    select! {
        biased;
        reply = reply => Ok(success(&keys, store, joiner, reply?)),
        never = republishing => match never {},
        () = limit.reached() => Err(JoinErrorKind::Silent),
    }
}

/// Republishes the join record while the reply is searched for. The reply may arrive before all
/// nodes have confirmed.
async fn republish_join(
    store: Arc<dyn RecordStore>,
    keys: &CodeKeys,
    joiner: &LongCodeJoiner,
    join: Zeroizing<Vec<u8>>,
) -> Infallible {
    loop {
        let reach = joiner.reach.as_ref().map(|make| make(None)).unwrap_or_default();
        let content = Content::new(Kind::Join, unix_seconds(), JOIN_LIFE_SECONDS, reach);
        let sealed = keys.join.seal(keys.hour, &content.with_body(join.clone()));
        let published = match sealed {
            Ok(record) => store.put(keys.join.seed(keys.hour), record).await,
            Err(why) => Err(why),
        };
        if let Err(why) = published {
            debug!(%why, "join record not published");
        }
        sleep(REPEAT_INTERVAL).await;
    }
}

impl LongCodeJoiner {
    fn side(&self) -> TicketSide {
        if self.ticket.is_some() { TicketSide::Joiner } else { TicketSide::Creator }
    }

    /// Reports whether the creator has admitted this joiner.
    fn is_admitted_by(&self, offer: &Offer) -> bool {
        let is_for_us = |(joiner, _): &(NodeId, _)| *joiner == self.own;
        offer.side == self.side() && offer.served.as_ref().is_some_and(is_for_us)
    }
}

impl JoinerHour {
    async fn new(
        store: &Arc<dyn RecordStore>,
        joiner: &LongCodeJoiner,
        hour: u64,
    ) -> Result<Self, PlaceError> {
        let keys = CodeKeys::of(&joiner.words, hour).await?;
        let offers = RecordFinder::new(Arc::clone(store), keys.offer.clone()).in_hour(hour);
        Ok(Self { keys, offers })
    }
}

/// Returns the creator's next offer, if it has changed.
async fn next_offer(offers: &mut RecordFinder) -> Result<Option<FoundOffer>, PlaceError> {
    let mut found = None;
    let lookup = offers.lookup(|content| {
        if content.kind == Kind::Offer {
            found = Offer::decode(&content.body).map(|offer| (offer, content.reach));
        }
        // Most nodes have the newest record; an older one only costs another search.
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    lookup.await?;
    Ok(found)
}

fn success(
    keys: &CodeKeys,
    store: &Arc<dyn RecordStore>,
    joiner: &LongCodeJoiner,
    (offer, reach): FoundOffer,
) -> JoinSuccess {
    let creator = offer.creator;
    let punch_secret = keys.punch_secret(creator, joiner.own);
    JoinSuccess {
        ticket: offer.served.map(|(_, ticket)| ticket).unwrap_or_default(),
        creator: joiner.ticket.is_some().then_some(creator),
        place: store.place(),
        from: None,
        punch_request: Some(PunchRequest { peer: creator, reach, punch_secret }),
    }
}
