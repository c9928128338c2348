//! Long codes, the joiner's side: finds the creator at all record stores.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::keys::CodeKeys;
use super::message::{Join, Offer};
use crate::code::join::{Attempt, JoinError, Met, Missed, NotMet, first_met};
use crate::code::{Code, MakeTicket, TicketSide};
use crate::contact::PunchRequest;
use crate::place::PlaceError;
use crate::places::Places;
use crate::reach::MakeReach;
use crate::reach::Reach;
use crate::record::content::{Content, Kind};
use crate::record::find::{Pace, RecordFinder};
use crate::record::hour::{hours_to_look_in, unix_seconds};
use crate::store::RecordStore;

/// Longest wait for the creator's reply. The creator looks every few seconds, and publishing takes
/// several more.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between repetitions of the join record, which another joiner may have overwritten.
const REPEAT_INTERVAL: Duration = Duration::from_secs(12);
/// Interval between searches for the creator's reply.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
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
    deadline: Instant,
    reach: Option<MakeReach>,
) -> Result<Met, JoinError> {
    let joiner = Arc::new(Joiner { words: code.secret(), own, ticket, deadline, reach });
    let mut attempts: Vec<Attempt> = Vec::new();
    for store in &places.stores {
        let (store, joiner) = (Arc::clone(store), Arc::clone(&joiner));
        attempts.push((store.place(), Box::pin(async move { attempt(store, &joiner).await })));
    }
    first_met(attempts).await
}

/// State shared by the attempts.
struct Joiner {
    words: Zeroizing<String>,
    own: NodeId,
    ticket: Option<MakeTicket>,
    deadline: Instant,
    reach: Option<MakeReach>,
}

/// One hour of the code at a store.
struct Hour {
    keys: CodeKeys,
    offers: RecordFinder,
}

/// The creator's offer and its addresses.
type Found = (Offer, Reach);

/// Runs the search at one store until the creator is met or success is impossible.
async fn attempt(store: Arc<dyn RecordStore>, joiner: &Joiner) -> Result<Met, Missed> {
    let mut last = Missed::from(NotMet::Nobody);
    let found = timeout_at(joiner.deadline, look(&store, joiner, &mut last)).await;
    let (hour, found) = match found {
        Ok(found) => found?,
        Err(_) => return Err(last),
    };
    Ok(meet(&store, joiner, hour, found).await?)
}

/// Searches until there is an offer. `last` receives the reason of the latest failure.
async fn look(
    store: &Arc<dyn RecordStore>,
    joiner: &Joiner,
    last: &mut Missed,
) -> Result<(Hour, Found), Missed> {
    let (mut hours, mut pace): (Vec<Hour>, _) = (Vec::new(), Pace::default());
    loop {
        let wanted = hours_to_look_in(unix_seconds());
        hours.retain(|hour| wanted.contains(&hour.keys.hour));
        for wanted in wanted {
            let at = match hours.iter().position(|hour| hour.keys.hour == wanted) {
                Some(at) => at,
                None => {
                    hours.push(Hour::new(store, joiner, wanted).await?);
                    hours.len() - 1
                }
            };
            match offer(&mut hours[at].offers).await {
                Ok(Some((offer, reach))) => match offer.ended {
                    // The offer was for this joiner, in an interrupted attempt.
                    Some(_) if joiner.is_let_in(&offer) => {
                        return Ok((hours.swap_remove(at), (offer, reach)));
                    }
                    Some(why) => return Err(NotMet::from(why).into()),
                    None if offer.side != joiner.side() => *last = NotMet::OtherKind.into(),
                    None => return Ok((hours.swap_remove(at), (offer, reach))),
                },
                Ok(None) => {}
                Err(why) => *last = why.into(),
            }
        }
        pace.wait().await;
    }
}

/// Publishes the join record and waits for the result.
async fn meet(
    store: &Arc<dyn RecordStore>,
    joiner: &Joiner,
    Hour { keys, mut offers }: Hour,
    (first, reach): Found,
) -> Result<Met, NotMet> {
    let creator = first.creator;
    let ticket = joiner.ticket.as_ref().map(|make| make(creator, None)).unwrap_or_default();
    let join = Join { joiner: joiner.own, side: joiner.side(), ticket }.encode();
    if joiner.is_let_in(&first) {
        return Ok(met(&keys, store, joiner, (first, reach)));
    }
    let saying = say_again_and_again(Arc::clone(store), &keys, joiner, join);
    let looking = async {
        loop {
            match offer(&mut offers).await {
                // Another owner of the words may publish here; that is not this creator's offer.
                Ok(Some((offer, now))) if offer.creator == creator => {
                    if joiner.is_let_in(&offer) {
                        return Ok((offer, now));
                    }
                    if let Some(why) = offer.ended {
                        return Err(NotMet::from(why));
                    }
                }
                Ok(_) => {}
                Err(why) => debug!(%why, "offer lookup failed"),
            }
            sleep(LOOK_INTERVAL).await;
        }
    };
    select! {
        looked = timeout(ANSWER_TIMEOUT, looking) => {
            Ok(met(&keys, store, joiner, looked.unwrap_or(Err(NotMet::Silent))?))
        }
        never = saying => match never {},
    }
}

/// Republishes the join record while the reply is searched for. The reply may arrive before all
/// nodes have confirmed.
async fn say_again_and_again(
    store: Arc<dyn RecordStore>,
    keys: &CodeKeys,
    joiner: &Joiner,
    join: Zeroizing<Vec<u8>>,
) -> Infallible {
    loop {
        let reach = joiner.reach.as_ref().map(|make| make(None)).unwrap_or_default();
        let content = Content::new(Kind::Join, unix_seconds(), JOIN_LIFE_SECONDS, reach);
        let sealed = keys.join.seal(keys.hour, &content.with_body(join.clone()));
        let said = match sealed {
            Ok(record) => store.put(keys.join.seed(keys.hour), record).await,
            Err(why) => Err(why),
        };
        if let Err(why) = said {
            debug!(%why, "join record not published");
        }
        sleep(REPEAT_INTERVAL).await;
    }
}

impl Joiner {
    fn side(&self) -> TicketSide {
        if self.ticket.is_some() { TicketSide::Joiner } else { TicketSide::Creator }
    }

    /// Reports whether the creator has admitted this joiner.
    fn is_let_in(&self, offer: &Offer) -> bool {
        let is_for_us = |(joiner, _): &(NodeId, _)| *joiner == self.own;
        offer.side == self.side() && offer.served.as_ref().is_some_and(is_for_us)
    }
}

impl Hour {
    async fn new(
        store: &Arc<dyn RecordStore>,
        joiner: &Joiner,
        hour: u64,
    ) -> Result<Self, PlaceError> {
        let keys = CodeKeys::of(&joiner.words, hour).await?;
        let offers = RecordFinder::new(Arc::clone(store), keys.offer.clone()).only_in(hour);
        Ok(Self { keys, offers })
    }
}

/// Returns the creator's next offer, if it has changed.
async fn offer(offers: &mut RecordFinder) -> Result<Option<Found>, PlaceError> {
    let mut found = None;
    let look = offers.look(|content| {
        if content.kind == Kind::Offer {
            found = Offer::decode(&content.body).map(|offer| (offer, content.reach));
        }
        // Most nodes have the newest record; an older one only costs another search.
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    look.await?;
    Ok(found)
}

fn met(
    keys: &CodeKeys,
    store: &Arc<dyn RecordStore>,
    joiner: &Joiner,
    (offer, reach): Found,
) -> Met {
    let creator = offer.creator;
    let punch_secret = keys.punch_secret(creator, joiner.own);
    Met {
        ticket: offer.served.map(|(_, ticket)| ticket).unwrap_or_default(),
        creator: joiner.ticket.is_some().then_some(creator),
        place: store.place(),
        from: None,
        left: Some(PunchRequest { peer: creator, reach, punch_secret }),
    }
}
