//! Finding the creator of a long code: the joiner's side, at every place that stores.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::keys::CodeKeys;
use super::message::{Join, Offer};
use crate::code::join::{Attempt, JoinError, Met, Missed, NotMet, first_met};
use crate::code::{Code, MakeTicket, TicketSide};
use crate::contact::LeftCall;
use crate::place::PlaceError;
use crate::places::Places;
use crate::reach::MakeReach;
use crate::reach::Reach;
use crate::record::content::{Content, Kind};
use crate::record::find::{Pace, RecordFinder};
use crate::record::hour::{hours_to_look_in, unix_seconds};
use crate::store::RecordStore;

/// The creator looks every few seconds, and writing takes some as well; then it is gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A joiner says once more that it is there after this time: another one may have written in its place.
const REPEAT_INTERVAL: Duration = Duration::from_secs(12);
/// Between two looks for the creator's answer.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long what a joiner says is good, in seconds.
const JOIN_LIFE_SECONDS: u64 = 180;

/// As [`crate::join`], of a long code. Nobody gets a guess from a joiner, because who answers has the words: so such a code can be
/// tried again. `reach` says where we can be reached.
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

/// What the attempts share.
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

/// What the creator says, and where it can be reached.
type Found = (Offer, Reach);

/// One store's part: until the creator is met, or there is no hope.
async fn attempt(store: Arc<dyn RecordStore>, joiner: &Joiner) -> Result<Met, Missed> {
    let mut last = Missed::from(NotMet::Nobody);
    let found = timeout_at(joiner.deadline, look(&store, joiner, &mut last)).await;
    let (hour, found) = match found {
        Ok(found) => found?,
        Err(_) => return Err(last),
    };
    Ok(meet(&store, joiner, hour, found).await?)
}

/// Looks until there is an offer. `last` is why there was none so far.
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
            match hours[at].offer().await {
                Ok(Some((offer, reach))) => match offer.ended {
                    // It was for us, in an attempt that was broken off.
                    Some(_) if offer.is_for(joiner.own) => {
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

/// Says who we are, and waits for what becomes of it.
async fn meet(
    store: &Arc<dyn RecordStore>,
    joiner: &Joiner,
    mut hour: Hour,
    (offer, mut reach): Found,
) -> Result<Met, NotMet> {
    let creator = offer.creator;
    let ticket = joiner.ticket.as_ref().map(|make| make(creator, None)).unwrap_or_default();
    let join = Join { joiner: joiner.own, side: joiner.side(), ticket }.encode();
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut current = Some(offer);
    let mut said: Option<Instant> = None;
    loop {
        if let Some(offer) = current.take() {
            if offer.is_for(joiner.own) && offer.side == joiner.side() {
                return Ok(hour.met(store, joiner, offer, reach));
            }
            if let Some(why) = offer.ended {
                return Err(why.into());
            }
        }
        if Instant::now() >= deadline {
            return Err(NotMet::Silent);
        }
        if said.is_none_or(|said| said.elapsed() >= REPEAT_INTERVAL) {
            match hour.say(store, joiner, &join).await {
                Ok(()) => said = Some(Instant::now()),
                Err(why) => debug!(%why, "a joiner could not say that it is there"),
            }
        }
        match hour.offer().await {
            // Who else has the words may write here; it is no other code for that.
            Ok(Some((offer, now))) if offer.creator == creator => {
                (current, reach) = (Some(offer), now);
            }
            Ok(_) => {}
            Err(why) => debug!(%why, "a joiner could not look"),
        }
        if current.is_none() {
            sleep(LOOK_INTERVAL).await;
        }
    }
}

impl Joiner {
    fn side(&self) -> TicketSide {
        if self.ticket.is_some() { TicketSide::Joiner } else { TicketSide::Creator }
    }
}

impl Offer {
    fn is_for(&self, joiner: NodeId) -> bool {
        self.served.as_ref().is_some_and(|(served, _)| *served == joiner)
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

    /// What the creator says that it has not said before.
    async fn offer(&mut self) -> Result<Option<Found>, PlaceError> {
        let mut found = None;
        let look = self.offers.look(|content| {
            if content.kind == Kind::Offer {
                found = Offer::decode(&content.body).map(|offer| (offer, content.reach));
            }
            // Most nodes have the newest; an older one only costs another look.
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        look.await?;
        Ok(found)
    }

    async fn say(
        &self,
        store: &Arc<dyn RecordStore>,
        joiner: &Joiner,
        join: &Zeroizing<Vec<u8>>,
    ) -> Result<(), PlaceError> {
        let reach = joiner.reach.as_ref().map(|make| make(None)).unwrap_or_default();
        let content = Content::new(Kind::Join, unix_seconds(), JOIN_LIFE_SECONDS, reach);
        let (hour, slot) = (self.keys.hour, &self.keys.join);
        let record = slot.seal(hour, &content.with_body(join.clone()))?;
        store.put(slot.seed(hour), record).await
    }

    fn met(
        &self,
        store: &Arc<dyn RecordStore>,
        joiner: &Joiner,
        offer: Offer,
        reach: Reach,
    ) -> Met {
        let creator = offer.creator;
        let punch_secret = self.keys.punch_secret(creator, joiner.own);
        Met {
            ticket: offer.served.map(|(_, ticket)| ticket).unwrap_or_default(),
            creator: joiner.ticket.is_some().then_some(creator),
            place: store.place(),
            from: None,
            left: Some(LeftCall { peer: creator, reach, punch_secret }),
        }
    }
}
