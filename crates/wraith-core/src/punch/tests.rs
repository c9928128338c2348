//! Both sides of a punch, and attacks by third parties.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use rand_core::SeedableRng;

use super::*;

const SECRET: [u8; 32] = [9; 32];

fn side(seed: u8) -> Punches {
    Punches::new(ChaCha20Rng::from_seed([seed; 32]))
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], port))
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn drain(side: &mut Punches, now: Time) -> Vec<(SocketAddr, Vec<u8>)> {
    let packets = std::iter::from_fn(|| side.poll_transmit(now));
    packets.map(|(to, packet)| (to.ip().expect("only IP addresses are asked"), packet)).collect()
}

fn events(side: &mut Punches) -> Vec<PunchEvent> {
    std::iter::from_fn(|| side.poll_event()).map(|(_, event)| event).collect()
}

/// Returns all packets that `side` sends until it is idle, without any answer.
fn alone(side: &mut Punches) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut now, mut sent) = (Time::ZERO, Vec::new());
    loop {
        sent.extend(drain(side, now));
        let Some(next) = side.timeout() else { return sent };
        assert!(next > now || now == Time::ZERO, "the timer advances");
        now = next;
        side.handle_timeout(now);
    }
}

#[test]
fn two_sides_prove_each_other_in_three_packets_and_end_with_the_address() {
    let (mut one, mut other) = (side(1), side(2));
    let (a, b) = (address(1, 1), address(2, 2));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &[b]).unwrap();
    other.punch(at(0), &SECRET, Role::Responder, PeerStart::Now, &[]).unwrap();
    let [(to, probe)] = drain(&mut one, at(0)).try_into().unwrap();
    assert!(to == b && other.handle(at(20), a, &probe));
    // The answer, and the first probe to its source address.
    let packets = drain(&mut other, at(20));
    assert!(packets.iter().all(|(to, _)| *to == a));
    assert!(one.handle(at(40), b, &packets[0].1));
    let rtt = Duration::from_millis(40);
    assert_eq!(events(&mut one), [PunchEvent::Punched { remote: b, rtt }, PunchEvent::Observed(a)]);
    let answers = drain(&mut one, at(40));
    assert!(other.handle(at(60), a, &answers[0].1));
    assert_eq!(events(&mut other)[0], PunchEvent::Punched { remote: a, rtt });
    for (side, remote) in [(&mut one, b), (&mut other, a)] {
        side.handle_timeout(at(310));
        let ended = events(side).pop();
        let Some(PunchEvent::Ended { best, counts }) = ended else { panic!("{ended:?}") };
        assert!(best == Some(remote) && counts.sent <= 3 && counts.received >= 1, "{counts:?}");
    }
    assert!(alone(&mut one).is_empty() && one.is_idle());
}

#[test]
fn a_peer_that_begins_later_is_waited_for_and_gets_no_more_packets() {
    let (mut one, mut other) = (side(1), side(2));
    let (a, b) = (address(1, 1), address(2, 2));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::WithinAMinute, &[b]).unwrap();
    // The peer's NAT drops our probes until the peer begins.
    let mut now = at(0);
    let mut sent = drain(&mut one, now).len();
    while let Some(next) = one.timeout().filter(|next| *next < at(45_000)) {
        now = next;
        one.handle_timeout(now);
        sent += drain(&mut one, now).len();
    }
    assert_eq!((sent, events(&mut one)), (7, vec![]));
    other.punch(at(0), &SECRET, Role::Responder, PeerStart::Now, &[a]).unwrap();
    let probes = drain(&mut other, at(45_000));
    assert!(one.handle(at(45_020), b, &probes[0].1));
    let answers = drain(&mut one, at(45_020));
    assert!(other.handle(at(45_040), a, &answers[0].1));
    assert!(matches!(events(&mut other)[0], PunchEvent::Punched { remote, .. } if remote == a));

    let mut nobody = side(3);
    nobody.punch(at(0), &SECRET, Role::Initiator, PeerStart::WithinAMinute, &[b]).unwrap();
    assert_eq!(alone(&mut nobody).len(), 8);
    assert!(matches!(events(&mut nobody)[..], [PunchEvent::Ended { best: None, .. }]));
}

#[test]
fn replays_and_reflections_prove_nothing_and_are_not_answered() {
    let (mut one, mut other) = (side(1), side(2));
    let (a, b, attacker) = (address(1, 1), address(2, 2), address(66, 6));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &[b]).unwrap();
    other.punch(at(0), &SECRET, Role::Responder, PeerStart::Now, &[]).unwrap();
    let probe = drain(&mut one, at(0)).remove(0).1;
    assert!(!one.handle(at(1), b, &probe), "its own, sent back");
    assert!(other.handle(at(10), a, &probe));
    let answer = drain(&mut other, at(10)).remove(0).1;
    for n in 0..100 {
        assert!(other.handle(at(11), attacker, &probe), "replayed {n}");
    }
    assert!(drain(&mut other, at(11)).iter().all(|(to, _)| *to != attacker));
    // An answer from an address other than the probed one proves no path.
    assert!(one.handle(at(20), attacker, &answer));
    let proved = |event: &PunchEvent| matches!(event, PunchEvent::Punched { .. });
    assert!(!events(&mut one).iter().any(proved));
    // The true answer is a repeat by then; the next round brings another.
    assert!(one.handle(at(21), b, &answer));
    assert!(!events(&mut one).iter().any(proved));
    let probe = drain(&mut one, at(200)).into_iter().find(|(to, _)| *to == b).unwrap().1;
    assert!(other.handle(at(210), a, &probe));
    let answer = drain(&mut other, at(210)).into_iter().find(|(to, _)| *to == a).unwrap().1;
    assert!(one.handle(at(220), b, &answer));
    assert!(events(&mut one).iter().any(proved));
}

#[test]
fn random_datagrams_and_those_of_other_secrets_do_nothing() {
    use rand_core::Rng;
    let (mut one, mut stranger) = (side(1), side(3));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &[]).unwrap();
    stranger.punch(at(0), &[8; 32], Role::Responder, PeerStart::Now, &[address(1, 1)]).unwrap();
    let probe = drain(&mut stranger, at(0)).remove(0).1;
    assert!(!one.handle(at(1), address(3, 3), &probe));
    let mut rng = ChaCha20Rng::from_seed([5; 32]);
    let mut random = [0; 200];
    for len in 0..200 {
        rng.fill_bytes(&mut random);
        assert!(!one.handle(at(1), address(3, 3), &random[..len]));
    }
    assert!(drain(&mut one, at(1)).is_empty() && events(&mut one).is_empty());
}

#[test]
fn third_parties_in_lists_of_candidates_get_a_few_small_packets_in_all() {
    let mut one = side(1);
    let victim = address(77, 53);
    let mut count = 0;
    for round in 0..16 {
        let ports = (0..15).map(|port| address(78, 1000 + round * 20 + port));
        let candidates: Vec<_> = std::iter::once(victim).chain(ports).collect();
        one.punch(at(0), &[round as u8; 32], Role::Initiator, PeerStart::Now, &candidates).unwrap();
    }
    assert_eq!(
        one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &[]),
        Err(PunchError::TooMany)
    );
    let (mut victims, mut line) = (0, 0);
    for (to, packet) in alone(&mut one) {
        assert!(packet.len() <= 160);
        victims += u32::from(to == victim);
        line += u32::from(to.ip() == address(78, 0).ip());
        count += 1;
    }
    assert!(victims <= 12 && line <= 64 && count <= 76, "{victims} {line}");
}

#[test]
fn a_peer_that_forges_where_its_probes_come_from_makes_us_send_no_more_than_it_sends() {
    let (mut one, mut liar) = (side(1), side(2));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &[]).unwrap();
    let victim = address(77, 53);
    let keys = Keys::new(&SECRET, Role::Responder);
    let question = packet::Message { asks: true, answers: None };
    let (mut sent, mut packets) = (0, 0);
    for n in 0..1000 {
        let (_, probe) = keys.question(&question, &mut liar.rng);
        one.handle(at(n), victim, &probe);
        packets += 1;
        let out = drain(&mut one, at(n));
        sent += out.iter().filter(|(to, _)| *to == victim).count();
    }
    assert!(sent <= 12, "{sent} for {packets}");
}

#[test]
fn of_several_addresses_that_work_the_best_is_chosen() {
    let candidates: [SocketAddr; 3] =
        [address(2, 2), "[2001:db8::2]:2".parse().unwrap(), address(3, 2)];
    let (mut one, mut other) = (side(1), side(2));
    one.punch(at(0), &SECRET, Role::Initiator, PeerStart::Now, &candidates).unwrap();
    other.punch(at(0), &SECRET, Role::Responder, PeerStart::Now, &[]).unwrap();
    let mut probes = drain(&mut one, at(0));
    // The nearest address answers first, IPv6 last.
    probes.sort_by_key(|(to, _)| {
        [candidates[2], candidates[0], candidates[1]].iter().position(|c| c == to)
    });
    for (n, (to, probe)) in probes.into_iter().enumerate() {
        let now = at(10 + 50 * n as u64);
        assert!(other.handle(now, address(1, 1), &probe));
        let answer = drain(&mut other, now).remove(0).1;
        assert!(one.handle(now, to, &answer));
    }
    one.handle_timeout(at(260));
    let ended = events(&mut one).pop();
    assert!(matches!(ended, Some(PunchEvent::Ended { best, .. }) if best == Some(candidates[1])));
}

#[test]
fn only_a_reflector_with_the_secret_reports_the_observed_address() {
    let mut one = side(1);
    let reflector = Reflector::new(&SECRET);
    let (at_reflector, us) = (address(5, 5), address(1, 4711));
    one.observe(at(0), &SECRET, at_reflector, AnswerMode::Itself).unwrap();
    let question = drain(&mut one, at(0)).remove(0).1;
    let mut rng = ChaCha20Rng::from_seed([4; 32]);
    let answer = reflector.answer(us, &question, &mut rng).unwrap();
    assert!(!answer.from_other_port && answer.after.is_zero());
    let answer = answer.packet;
    assert!(answer.len() <= question.len());
    assert!(!one.handle(at(5), address(6, 6), &answer), "from elsewhere");
    assert!(!one.handle(at(5), at_reflector, &question), "its own");
    assert_eq!(reflector.answer(us, &answer, &mut rng), None);
    let other = Reflector::new(&[8; 32]);
    assert_eq!(other.answer(us, &question, &mut rng), None);
    assert!(one.handle(at(6), at_reflector, &answer));
    assert_eq!(events(&mut one), [PunchEvent::Observed(us)]);
    assert!(one.is_idle());
}

#[test]
fn a_reflector_that_is_silent_is_asked_four_times_and_given_up() {
    let mut one = side(1);
    one.observe(at(0), &SECRET, address(5, 5), AnswerMode::Itself).unwrap();
    assert_eq!(alone(&mut one).len(), 4);
    assert!(matches!(events(&mut one)[..], [PunchEvent::Ended { best: None, .. }]));
    assert!(one.observe(at(9), &SECRET, address(5, 0), AnswerMode::Itself).is_err());
    assert!(one.observe(at(9), &SECRET, address(5, 5), AnswerMode::Port(0)).is_err());
}

#[test]
fn an_answer_that_is_wanted_from_another_port_counts_from_there_only() {
    let mut one = side(1);
    let reflector = Reflector::new(&SECRET);
    one.observe(at(0), &SECRET, address(5, 5), AnswerMode::Port(6)).unwrap();
    let (to, question) = drain(&mut one, at(0)).remove(0);
    assert_eq!(to, address(5, 5));
    let mut rng = ChaCha20Rng::from_seed([4; 32]);
    let answer = reflector.answer(address(1, 4711), &question, &mut rng).unwrap();
    assert!(answer.from_other_port && answer.packet.len() <= question.len());
    assert!(!one.handle(at(5), address(5, 5), &answer.packet), "from where it was asked");
    assert!(one.handle(at(5), address(5, 6), &answer.packet));
    assert_eq!(events(&mut one), [PunchEvent::Observed(address(1, 4711))]);
}

#[test]
fn an_answer_that_is_wanted_after_a_pause_is_waited_for_in_silence() {
    let mut one = side(1);
    let reflector = Reflector::new(&SECRET);
    let pause = Duration::from_secs(48);
    one.observe(at(0), &SECRET, address(5, 5), AnswerMode::ItselfAfter(pause)).unwrap();
    let question = drain(&mut one, at(0)).remove(0).1;
    let mut rng = ChaCha20Rng::from_seed([4; 32]);
    let answer = reflector.answer(address(1, 4711), &question, &mut rng).unwrap();
    assert_eq!(answer.after, pause);
    for (millis, more) in [(250, 1), (750, 1), (1750, 1), (2750, 0), (50_000, 0)] {
        one.handle_timeout(at(millis));
        assert_eq!(drain(&mut one, at(millis)).len(), more, "{millis}");
    }
    assert!(one.handle(at(50_001), address(5, 5), &answer.packet));
    assert_eq!(events(&mut one), [PunchEvent::Observed(address(1, 4711))]);
    // The wait is bounded.
    one.observe(at(60_000), &SECRET, address(5, 5), AnswerMode::ItselfAfter(pause)).unwrap();
    one.handle_timeout(at(60_000 + 48_000 + 5749));
    assert!(!one.is_idle());
    one.handle_timeout(at(60_000 + 48_000 + 5750));
    assert!(one.is_idle());
}

#[test]
fn an_exchange_accepts_one_reply_from_the_address_asked_in_time() {
    let mut one = side(1);
    let (node, other) = (address(5, 5), address(5, 6));
    one.exchange(at(0), node, b"ping").unwrap();
    assert_eq!(one.exchange(at(0), node, b"ping"), Err(PunchError::TooMany));
    assert_eq!(drain(&mut one, at(0)), [(node, b"ping".to_vec())]);
    assert!(!one.handle(at(1), other, b"pong"));
    assert!(one.handle(at(1), node, &[7; 3000]));
    assert_eq!(events(&mut one), [PunchEvent::Reply(vec![7; 1500])]);
    assert!(!one.handle(at(1), node, b"pong"));
    for port in 1..=8 {
        one.exchange(at(2), address(6, port), b"ping").unwrap();
    }
    assert_eq!(one.exchange(at(2), address(6, 9), b"ping"), Err(PunchError::TooMany));
    one.handle_timeout(at(3002));
    assert!(one.is_idle() && events(&mut one).len() == 8);
    assert_eq!(one.exchange(at(4000), node, &[0; 1501]), Err(PunchError::TooLong));
}

#[test]
fn a_flood_takes_no_more_hashes_than_its_budget_and_the_next_second_has_its_own() {
    let (mut one, mut other) = (side(1), side(2));
    for n in 0..16 {
        one.punch(at(0), &[n; 32], Role::Initiator, PeerStart::Now, &[]).unwrap();
    }
    other.punch(at(0), &[3; 32], Role::Responder, PeerStart::Now, &[address(1, 1)]).unwrap();
    let probe = drain(&mut other, at(0)).remove(0).1;
    let tried = (0..100_000).filter(|_| one.hashes.take(at(1), 16)).count();
    assert!(tried <= (1 << 18) / 16 / 8 + 1, "{tried}");
    assert!(!one.handle(at(1), address(2, 2), &probe));
    assert!(one.handle(at(1001), address(2, 2), &probe));
}

/// Runs one attempt between the side with many sockets and the side that probes ports. The NAT of
/// the first maps a port for each socket; the second side's NAT admits only hosts that side has
/// sent to. Returns the address proven to the second side, if any, and the packets that each side
/// sent.
fn port_guessing(seed: u64) -> (Option<SocketAddr>, [usize; 2]) {
    use rand_core::Rng;
    let seeded = |n: u64| Punches::new(ChaCha20Rng::seed_from_u64(2 * seed + n));
    let (mut hard, mut easy) = (seeded(0), seeded(1));
    let mut rng = ChaCha20Rng::seed_from_u64((1 << 40) + seed);
    let sockets: Vec<_> = (1..=256).map(|n| PathAddr::Via(NonZeroU32::new(n).unwrap())).collect();
    let mut drawn: HashMap<u16, PathAddr> = HashMap::new();
    while drawn.len() < 256 {
        let port = rng.next_u32() as u16;
        if port >= 1024 {
            let next = sockets[drawn.len()];
            drawn.entry(port).or_insert(next);
        }
    }
    let outside: HashMap<_, _> = drawn.iter().map(|(port, socket)| (*socket, *port)).collect();
    let (mapped, opened) = (&mut HashSet::new(), &mut HashSet::new());
    let (hard_ip, easy_at) = (address(9, 1).ip(), address(2, 2));
    hard.punch_by_port_guessing(at(0), &SECRET, Role::Initiator, &PortGuessing::Sockets(sockets))
        .unwrap();
    let IpAddr::V4(ip) = hard_ip else { unreachable!() };
    let (mut now, mut proved, mut sent, mut begun) = (at(0), None, [0; 2], false);
    loop {
        if !begun && now >= at(900) {
            begun = true;
            easy.punch_by_port_guessing(now, &SECRET, Role::Responder, &PortGuessing::Ports(ip))
                .unwrap();
        }
        while let Some((from, packet)) = hard.poll_transmit(now) {
            sent[0] += 1;
            mapped.insert(from);
            let at = SocketAddr::new(hard_ip, outside[&from]);
            if opened.contains(&at) {
                easy.handle(now, at, &packet);
            }
        }
        while let Some((to, packet)) = easy.poll_transmit(now) {
            sent[1] += 1;
            let to = to.ip().unwrap();
            opened.insert(to);
            match drawn.get(&to.port()) {
                Some(socket) if mapped.contains(socket) => hard.handle(now, *socket, &packet),
                _ => false,
            };
        }
        for event in events(&mut easy) {
            if let PunchEvent::Ended { best, .. } = event {
                proved = best;
            }
        }
        let proved_there = |event: &PunchEvent| {
            matches!(event, PunchEvent::Punched { .. } | PunchEvent::Ended { best: Some(_), .. })
        };
        assert!(!events(&mut hard).iter().any(proved_there), "it has no name for the pair");
        let start = (!begun).then_some(at(900));
        let next = [hard.timeout(), easy.timeout(), start].into_iter().flatten().min();
        let Some(next) = next else { break };
        now = next.max(now);
        hard.handle_timeout(now);
        easy.handle_timeout(now);
    }
    assert!(proved.is_none_or(|at| at.ip() == hard_ip && easy_at != at));
    (proved, sent)
}

#[test]
fn port_guessing_succeeds_at_the_expected_rate() {
    let mut met = 0;
    for seed in 0..200 {
        let (proved, sent) = port_guessing(seed);
        met += u32::from(proved.is_some());
        let least = if proved.is_some() { 1 } else { 256 };
        assert!(
            sent.iter().all(|sent| (least..=256 + 12).contains(sent)),
            "{seed} {sent:?} {proved:?}"
        );
    }
    // 64 % of 200; ten percentage points are three standard deviations.
    assert!((108..=148).contains(&met), "{met}");
}

#[test]
fn port_guessing_is_rate_limited_and_needs_a_unicast_address() {
    let mut one = side(1);
    let ports = |ip: [u8; 4]| PortGuessing::Ports(ip.into());
    let mut begin = |now, port_guessing: &PortGuessing| {
        one.punch_by_port_guessing(now, &SECRET, Role::Initiator, port_guessing)
    };
    assert_eq!(begin(at(0), &ports([224, 0, 0, 1])), Err(PunchError::NotATarget));
    begin(at(0), &ports([198, 51, 100, 7])).unwrap();
    assert_eq!(begin(at(7999), &ports([198, 51, 100, 8])), Err(PunchError::TooMany));
    begin(at(8000), &ports([198, 51, 100, 8])).unwrap();
    let sent = alone(&mut one);
    for host in [7, 8] {
        let asked: HashSet<_> =
            sent.iter().filter(|(to, _)| to.ip() == address(host, 0).ip()).collect();
        assert_eq!(asked.len(), 256);
        assert!(asked.iter().all(|(to, _)| to.port() >= 1024));
    }
    assert_eq!(sent.len(), 512);
}

#[test]
fn a_guessed_port_is_answered_beyond_the_unproven_budget() {
    let (mut one, mut other) = (side(1), side(2));
    // Earlier attempts have used up the budget of the address.
    for round in 0..6u8 {
        let candidates: Vec<_> = (0..15).map(|port| address(9, 2000 + port)).collect();
        one.punch(at(0), &[round + 1; 32], Role::Initiator, PeerStart::Now, &candidates).unwrap();
    }
    let spent = alone(&mut one).into_iter().filter(|(to, _)| to.ip() == address(9, 0).ip());
    assert_eq!(spent.count(), 64);
    let IpAddr::V4(ip) = address(9, 1).ip() else { unreachable!() };
    one.punch_by_port_guessing(at(20_000), &SECRET, Role::Initiator, &PortGuessing::Ports(ip))
        .unwrap();
    let mut asked = Vec::new();
    for ms in (20_000..20_600).step_by(2) {
        asked.extend(drain(&mut one, at(ms)));
    }
    let port = asked[0].0;
    other.punch(at(20_600), &SECRET, Role::Responder, PeerStart::Now, &[address(2, 2)]).unwrap();
    let question = drain(&mut other, at(20_600)).remove(0).1;
    assert!(one.handle(at(20_610), port, &question));
    assert_eq!(drain(&mut one, at(20_610)).len(), 1, "the pair that was guessed right is answered");
}
