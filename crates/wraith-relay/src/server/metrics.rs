//! Metrics of a relay: numbers only, without addresses, mailboxes or identities.

crate::metrics! {
    /// All metrics.
    pub struct Metrics, "wraith_relay_";
    clients gauge "clients" "Clients with a session.",
    pairs gauge "pairs" "Open pairs.",
    mailboxes gauge "mailboxes" "Mailboxes with a waiting client.",
    draining gauge "draining" "1 while the relay is about to stop.",
    connections counter "connections_total" "TCP connections accepted.",
    turned_away counter "connections_refused_total" "TCP connections closed for lack of room.",
    handshakes_failed counter "handshakes_failed_total" "TLS handshakes that failed.",
    sessions counter "sessions_total" "Sessions made.",
    resumed counter "sessions_resumed_total" "Sessions resumed on another connection.",
    refused counter "sessions_refused_total" "Clients refused.",
    identities_shown counter "identity_proofs_total" "Identity proofs received.",
    malformed counter "malformed_total" "Connections closed after a malformed frame.",
    pairs_made counter "pairs_total" "Pairs made.",
    dials_refused counter "dials_refused_total" "Requests for a pair that were refused.",
    forwarded counter "forwarded_datagrams_total" "Datagrams passed on.",
    forwarded_bytes counter "forwarded_bytes_total" "Bytes of datagrams passed on.",
    limited counter "limited_datagrams_total" "Datagrams lost to a limit.",
    overflowed counter "overflowed_datagrams_total" "Datagrams lost to a full queue.",
    unreachable counter "unreachable_datagrams_total" "Datagrams for a client that is not there.",
    unauthentic counter "unauthentic_datagrams_total" "UDP datagrams from unknown senders, not answered.",
    challenges counter "challenges_total" "Challenges sent to addresses that were not proved.",
    bindings counter "bindings_total" "UDP addresses proved.",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_format_of_prometheus() {
        let metrics = Metrics::default();
        metrics.pairs.set(3);
        metrics.forwarded_bytes.add(5);
        let text = metrics.to_text();
        assert!(text.contains("# TYPE wraith_relay_pairs gauge\nwraith_relay_pairs 3\n"));
        assert!(text.contains("wraith_relay_forwarded_bytes_total 5\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.split_once(' ').unwrap();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            value.parse::<u64>().unwrap();
        }
    }
}
