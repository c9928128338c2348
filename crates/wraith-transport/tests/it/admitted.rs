//! The allowlist can change while an endpoint runs; other clients get no answer.

use crate::support::{HANG, V4, access_key, config, endpoint, node_id, run};
use wraith_transport::{CloseReason, Config, Endpoint, block_on_timeout};

#[test]
fn only_allowlisted_clients_get_an_answer() {
    let server = endpoint(2, V4);
    server.admit_only(Some([node_id(3)].into()));
    let mut core = config(1);
    core.transport.idle_timeout = std::time::Duration::from_secs(1);
    let stranger = Endpoint::bind(Config::new(core).bind((V4, 0))).unwrap();
    let connection =
        run(stranger.connect(&[server.local_addr()], node_id(2), &access_key(2))).unwrap();
    assert_eq!(run(connection.closed()), CloseReason::IdleTimeout, "no CLOSE, nothing");

    let friend = endpoint(3, V4);
    let connection =
        run(friend.connect(&[server.local_addr()], node_id(2), &access_key(2))).unwrap();
    let accepted = block_on_timeout(server.accept(), HANG).unwrap().unwrap();
    assert_eq!(accepted.peer(), node_id(3), "the stranger was never seen");

    // An existing connection stays; a later one is checked against the new filter.
    server.admit_only(None);
    // Uses the ordinary idle timeout: this test must survive a second without CPU time.
    let stranger = endpoint(1, V4);
    let known = run(stranger.connect(&[server.local_addr()], node_id(2), &access_key(2))).unwrap();
    // Held: a connection without handles closes and notifies its peer.
    let judged_anew = run(server.accept()).unwrap();
    assert_eq!(judged_anew.peer(), node_id(1));
    assert_eq!((connection.close_reason(), known.close_reason()), (None, None));
}
