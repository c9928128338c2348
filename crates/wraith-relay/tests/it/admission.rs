//! Admission to a relay, and resource limits.

use wraith_relay::{Admission, Refusal, RelayConfig, RelayError, RelayTransport, Relays, Token};
use wraith_transport::SecretIdentity;

use crate::support::{Relay, RelayedPair, send, within};

/// Connects with `config` and returns the result.
async fn try_connect(config: RelayConfig) -> Result<(), RelayError> {
    within(Relays::new().unwrap().connect(config)).await.map(drop)
}

fn refused(result: &Result<(), RelayError>, why: Refusal) -> bool {
    matches!(result, Err(RelayError::Refused(reason)) if *reason == why)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_with_tokens_admits_only_token_owners_and_limits_guesses() {
    let tokens = || vec![Token::new("first"), Token::new("second")];
    let relay = Relay::start(|options| options.admission = Admission::Tokens(tokens())).await;
    let with = |token: Option<&str>| RelayConfig { token: token.map(Token::new), ..relay.config() };
    try_connect(with(Some("second"))).await.unwrap();
    assert!(refused(&try_connect(with(None)).await, Refusal::Token));
    for _ in 0..5 {
        assert!(refused(&try_connect(with(Some("third"))).await, Refusal::Token));
    }
    assert!(refused(&try_connect(with(Some("third"))).await, Refusal::TooOften));
    assert!(refused(&try_connect(with(Some("first"))).await, Refusal::TooOften));
    assert_eq!(relay.metrics.sessions.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_with_an_allowlist_admits_only_its_identities() {
    let [known, stranger] = [1, 2].map(|seed| SecretIdentity::from_seed([seed; 32]));
    let nodes = [known.node_id()].into();
    let relay = Relay::start(|options| options.admission = Admission::Nodes(nodes)).await;
    let with = |identity| RelayConfig { identity, ..relay.config() };
    try_connect(with(Some(known))).await.unwrap();
    assert!(refused(&try_connect(with(Some(stranger))).await, Refusal::Identity));
    assert!(refused(&try_connect(with(None)).await, Refusal::Identity));
    assert_eq!(relay.metrics.identities_shown.get(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_asks_for_no_identity_is_shown_none() {
    let identity = Some(SecretIdentity::from_seed([1; 32]));
    for admission in [Admission::Open, Admission::Tokens(vec![Token::new("one")])] {
        let is_open = matches!(admission, Admission::Open);
        let relay = Relay::start(|options| options.admission = admission).await;
        let result =
            try_connect(RelayConfig { identity: identity.clone(), ..relay.config() }).await;
        assert_eq!(result.is_ok(), is_open, "{result:?}");
        assert_eq!(relay.metrics.identities_shown.get(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_with_a_wrong_key_is_rejected_and_an_unpinned_one_reports_its_pin() {
    let relay = Relay::start(|_| ()).await;
    let result = try_connect(RelayConfig { pin: Some([7; 32]), ..relay.config() }).await;
    let Err(RelayError::Pin(mismatch)) = result else { panic!("{result:?}") };
    assert_eq!((mismatch.expected, mismatch.found), ([7; 32], relay.pin));
    let client = Relays::new().unwrap();
    let client = client.connect(RelayConfig { pin: None, ..relay.config() }).await.unwrap();
    assert_eq!(*client.pin(), relay.pin);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_and_pairs_of_one_address_are_bounded() {
    let relay = Relay::start(|options| {
        options.limits.clients_per_address = 2;
        options.limits.pairs_per_address = 1;
    })
    .await;
    let pair = relay.pair(RelayTransport::Udp).await;
    assert!(refused(&try_connect(relay.config()).await, Refusal::Full));
    // The dialling client's address is charged, not the dialled one's: otherwise peers could use up
    // an address's limit.
    let more = within(pair.dialling_client.dial(pair.mailbox)).await;
    assert!(matches!(more, Err(RelayError::Refused(Refusal::Full))), "{more:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_beyond_the_rate_are_retransmitted_and_the_daily_limit_ends_the_transfer() {
    let relay = Relay::start(|options| options.limits.pair_rate = Some(4 << 20)).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    send(&pair.a, &pair.b, 2 << 20).await;
    assert!(relay.metrics.limited.get() > 0);
    let relay = Relay::start(|options| options.limits.day_bytes = Some(1 << 20)).await;
    let pair = RelayedPair::numbered(
        [relay.config(), relay.config()],
        [RelayTransport::Udp, RelayTransport::Udp],
        2,
    )
    .await;
    let (mut stream, _) = pair.a.open_stream().await.unwrap();
    let lost = tokio::spawn(async move { stream.write_all(&vec![0; 8 << 20]).await });
    crate::support::until(|| relay.metrics.limited.get() > 0).await;
    lost.abort();
    assert!(relay.metrics.forwarded_bytes.get() <= 1 << 20);
}
