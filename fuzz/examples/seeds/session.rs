//! Inputs of the targets of `wraith-session`: genuine messages and states, and scripts that damage
//! genuine messages.

use wraith_crypto::Suite;
use wraith_fuzz::session_world::{
    alice, bob, conversation, encrypt, handshakes, protocol, rng, sessions,
};
use wraith_session::fragment::Splitter;
use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
use wraith_session::vault::Record;
use wraith_session::{Handshake, Session, sealed_box};

use super::save;

/// Kinds of `Input::tampered`.
const AS_IT_IS: [u8; 3] = [0, 0, 0];
const CUT: [u8; 3] = [2, 0, 9];
const LONGER: [u8; 4] = [3, 0, 0, 9];
const SPLICED: [u8; 3] = [4, 0, 30];

pub(crate) fn save_all() -> std::io::Result<()> {
    save("session_handshake", &handshake_scripts())?;
    save("session_open", &session_scripts())?;
    save("session_state", &session_states())?;
    save("vault_record", &records())?;
    save("fragments", &fragments())?;
    save("sealed_box", &boxes())?;
    save("protocol_name", &names())?;
    save("ratchet_message", &ratchet_scripts())?;
    save("ratchet_peer", &liars())?;
    save("ratchet_start", &start_scripts())?;
    save("prekey_bundle", &bundles())?;
    save("ratchet_state", &ratchet_states())?;
    save("prekeys_state", &prekeys_states())
}

/// A script step that flips one bit at `at`.
fn flipped(at: u16) -> Vec<u8> {
    let [high, low] = at.to_be_bytes();
    vec![1, high, low, 0x10]
}

/// A script step that replaces the message by these bytes.
fn instead(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("a message of a few kilobytes");
    let [high, low] = len.to_be_bytes();
    [&[5, high, low], bytes].concat()
}

fn protocols() -> impl Iterator<Item = u8> {
    // Each pattern: alone, with ML-KEM, and with ML-KEM and a pre-shared key.
    (0..5).flat_map(|pattern| [pattern, pattern | 0x20, pattern | 0x60])
}

/// One script for each pattern and side, with one forgery of each kind. The forgeries include each
/// message of the genuine handshake with its last byte changed.
fn handshake_scripts() -> Vec<Vec<u8>> {
    let script = |which: u8| {
        let mut sides = handshakes(protocol(which & 0x7f));
        let mut lies = [&flipped(40)[..], &CUT, &LONGER, &SPLICED].concat();
        let mut turn = 0;
        while !sides.iter().all(Handshake::is_finished) {
            let message = sides[turn].write(b"payload").expect("it is its turn");
            turn = 1 - turn;
            sides[turn].read(&message).expect("it is the other side's");
            if turn == usize::from(which >> 7) {
                let (last, rest) = message.split_last().expect("it is not empty");
                lies.extend(instead(&[rest, &[last ^ 1]].concat()));
            }
        }
        [&[which], &lies[..]].concat()
    };
    protocols().flat_map(|which| [script(which), script(which | 0x80)]).collect()
}

fn session_scripts() -> Vec<Vec<u8>> {
    let [mut one, _] = sessions();
    let mut message = Vec::new();
    one.seal(b"aad", &[0], &mut message).expect("the first");
    let step = |choice: u8, tampered: &[u8]| [&[choice], tampered].concat();
    let again: Vec<_> = (0..12).flat_map(|n| step(0x80 | n, &AS_IT_IS)).collect();
    let back: Vec<_> = (0..12).flat_map(|n| step(11 - n, &AS_IT_IS)).collect();
    let far = |number: u64| {
        [step(0xc0, &AS_IT_IS), number.to_be_bytes().to_vec(), step(0, &AS_IT_IS)].concat()
    };
    vec![
        [step(0x80, &instead(&message)), step(0, &instead(&message))].concat(),
        [again.clone(), back].concat(),
        [again, step(1, &flipped(3)), step(2, &CUT), step(3, &LONGER), step(4, &SPLICED)].concat(),
        far(1 << 20),
        far(u64::MAX),
        far(1 << 31),
    ]
}

/// States of a fresh session, of one in the middle, and of one that holds the key of the previous
/// epoch.
fn session_states() -> Vec<Vec<u8>> {
    let [mut one, mut two] = sessions();
    let mut states = vec![two.save().bytes().to_vec()];
    for _ in 0..7 {
        let mut message = Vec::new();
        one.seal(b"", b"text", &mut message).expect("numbers are left");
        two.open(b"", &message, &mut Vec::new()).expect("it comes in order");
        states.push(two.save().bytes().to_vec());
    }
    states.push(Session::new(Suite::Aes256Gcm, &[1; 32], &[2; 32]).save().bytes().to_vec());
    states.dedup();
    states
}

/// One record of each kind, with and without its checksum.
fn records() -> Vec<Vec<u8>> {
    let world = conversation();
    let session = session_states().remove(0);
    let states = [(1, &session), (2, &world.alice), (3, &world.prekeys), (4, &session)];
    let whole: Vec<_> =
        states.iter().map(|(kind, state)| Record::encode(*kind, 7, state).to_vec()).collect();
    let unchecked = whole.iter().map(|record| [&[0], &record[..record.len() - 32]].concat());
    unchecked.chain(whole.iter().cloned()).collect()
}

fn fragments() -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(&mut rng(1));
    let mut pieces = |len: usize, room: usize| -> Vec<Vec<u8>> {
        let pieces = splitter.split(&vec![3; len], room).expect("there is room");
        pieces.into_iter().map(|piece| [&[piece.len() as u8], &piece[..]].concat()).collect()
    };
    let (whole, several, mut backwards) = (pieces(9, 40), pieces(300, 90), pieces(200, 60));
    let lost: Vec<_> = (0..8).flat_map(|_| pieces(100, 60).remove(0)).collect();
    backwards.reverse();
    let wide = [14, 2, 5, 0, 1, 0, 44, 1, 1, 2, 3, 4, 5, 6, 7].to_vec();
    let fair = [0, 40, 1, 0, 0, 90, 2, 0, 0, 0, 0, 100].to_vec();
    vec![
        whole.concat(),
        several.concat(),
        backwards.concat(),
        lost,
        wide,
        fair.clone(),
        [several.concat(), fair, backwards.concat()].concat(),
    ]
}

/// The genuine box, and one script for each kind of damage.
fn boxes() -> Vec<Vec<u8>> {
    let to = bob().node_id();
    let sealed = sealed_box::seal(&mut rng(1), &to, b"context", b"text").expect("it is short");
    let damaged: [&[u8]; 4] = [&flipped(40), &CUT, &LONGER, &SPLICED];
    let scripts = damaged.map(|lie| [&[1], lie].concat());
    [[&[0], &sealed[..]].concat()].into_iter().chain(scripts).collect()
}

fn names() -> Vec<Vec<u8>> {
    let names = protocols().map(|which| protocol(which).to_string().into_bytes());
    let other = ["Noise_XXpsk0_25519_AESGCM_SHA256", "Noise_IKhfs_25519+MLKEM768_AESGCM_BLAKE2b"];
    names.chain(other.map(|name| name.as_bytes().to_vec())).collect()
}

/// For each stage of a conversation: messages in order, in reverse, damaged, and genuine messages
/// as bytes.
fn ratchet_scripts() -> Vec<Vec<u8>> {
    let step = |choice: u8, tampered: &[u8]| [&[choice], tampered].concat();
    let order: Vec<_> = (0..6).flat_map(|n| step(0x80 | n, &AS_IT_IS)).collect();
    let late: Vec<_> = (0..6)
        .flat_map(|_| step(0x80, &CUT))
        .chain((0..6).flat_map(|n| step(5 - n, &AS_IT_IS)))
        .collect();
    let damaged = [
        step(0x80, &flipped(80)),
        step(0x81, &CUT),
        step(1, &LONGER),
        step(0, &SPLICED),
        step(0, &flipped(5)),
    ]
    .concat();
    let real = |which: u8| {
        let [mut sender, _] = conversation().pair(which);
        let message = encrypt(&mut sender, 0, &[0; 3]);
        [step(0x80, &instead(&message)), step(0, &instead(&message))].concat()
    };
    let scripts = |which: u8| {
        [&order, &late, &damaged, &real(which)].map(|script| [&[which], &script[..]].concat())
    };
    (0..3).flat_map(scripts).collect()
}

/// Scripts of a lying peer, for each stage of a conversation:
///
/// - It is honest.
/// - It loses as many messages as may be missing, or one more.
/// - It changes the number of the next message, the length of the previous chain, or the ML-KEM
///   part.
fn liars() -> Vec<Vec<u8>> {
    // Version, suite, two identities, binding, root; own and remote key; then the sending chain and
    // the fields after it.
    const NUMBER_AT: u16 = 2 + 4 * 32 + 2 * 33 + 1 + 64;
    const PREVIOUS_LEN_AT: u16 = NUMBER_AT + 4;
    let change = |at: u16, removed: u8, bytes: &[u8]| {
        let len = u16::try_from(bytes.len()).expect("a few bytes");
        [&[3], &at.to_be_bytes()[..], &[removed], &len.to_be_bytes(), bytes].concat()
    };
    let lost = |count: u16| [&[0, 1], &count.to_be_bytes()[..], &[0, 2, 0, 2]].concat();
    let turns = vec![0, 0, 2, 0, 2, 2, 0];
    let number = [change(NUMBER_AT, 4, &[9, 0, 0, 0]), vec![0, 0, 2, 0]].concat();
    let previous =
        [vec![2], vec![0], change(PREVIOUS_LEN_AT, 4, &[0xff; 4]), vec![0, 2, 0]].concat();
    let (script, mut all) = ([turns, lost(1000), lost(1001), number, previous], Vec::new());
    for which in 0..3 {
        all.extend(script.iter().map(|script| [&[which], &script[..]].concat()));
    }
    // A ciphertext that nobody requested, placed behind the keys of the next chains and the number
    // of chains.
    let state = &conversation().alice;
    let begun = Ratchet::restore(state).map(|mut ratchet| {
        encrypt(&mut ratchet, 0, b"");
        ratchet.save().len()
    });
    let begun = u16::try_from(begun.expect("it was saved")).expect("a short state");
    let part_at = begun - (1 + 1 + 4 + 8 + 1 + 1 + 12 + 8 + 4 + 4);
    let ciphertext = [&[2][..], &[5; 1088]].concat();
    all.push([&[0, 1, 0, 1][..], &change(part_at, 1, &ciphertext), &[0, 2, 0]].concat());
    all
}

fn start_scripts() -> Vec<Vec<u8>> {
    let first = &conversation().first;
    let step = |choice: u8, tampered: &[u8]| [&[choice], tampered].concat();
    vec![
        [step(0, &AS_IT_IS), step(0, &AS_IT_IS), step(1, &AS_IT_IS)].concat(),
        [step(1, &flipped(1)), step(1, &flipped(70)), step(1, &flipped(1200)), step(1, &AS_IT_IS)]
            .concat(),
        [step(0, &SPLICED), step(0, &CUT), step(0, &LONGER)].concat(),
        [step(0, &instead(&first[0])), step(1, &instead(&first[1]))].concat(),
    ]
}

/// Bundles with and without one-time prekeys, with their own signatures and with fresh ones.
fn bundles() -> Vec<Vec<u8>> {
    let world = conversation();
    let mut prekeys = PreKeys::generate(&mut rng(9), &bob(), 0);
    let short = prekeys.bundle().expect("no vault can fail").encode();
    let unsigned = [&world.bundle, &short].map(|bundle| [&[1], &bundle[..]].concat());
    let signed = [&world.bundle, &short].map(|bundle| [&[0], &bundle[..]].concat());
    unsigned.into_iter().chain(signed).collect()
}

fn ratchet_states() -> Vec<Vec<u8>> {
    let world = conversation();
    let states = [
        &world.unanswered,
        &world.alice,
        &world.bob,
        &world.offering,
        &world.unaware,
        &world.answering,
    ];
    states.map(Clone::clone).into()
}

/// States before and after a start, with and without one-time prekeys, and with older signed
/// prekeys.
fn prekeys_states() -> Vec<Vec<u8>> {
    let world = conversation();
    let mut used = PreKeys::restore(&world.prekeys).expect("they were saved");
    Ratchet::respond(&bob(), &mut used, b"", &world.first[0]).expect("it is the first");
    let mut rotated = PreKeys::generate(&mut rng(9), &bob(), 0);
    let bundle = PreKeyBundle::decode(&rotated.bundle().expect("no vault can fail").encode())
        .expect("it was encoded");
    let suite = Suite::ChaCha20Poly1305;
    let mut other =
        Ratchet::initiate_with(&mut rng(10), &alice(), &bundle, suite).expect("it is good");
    let first = encrypt(&mut other, 11, b"first");
    Ratchet::respond(&bob(), &mut rotated, b"", &first).expect("it is the first");
    rotated.rotate(&mut rng(12), &bob()).expect("few were made");
    vec![world.prekeys.clone(), used.save().to_vec(), rotated.save().to_vec()]
}
