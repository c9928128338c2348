//! Messages of a session, beside snow with explicit nonces and AWS-LC alone.

use std::cell::RefCell;
use std::hint::black_box;

use snow::StatelessTransportState;
use wraith_crypto::{AeadKey, Implementation, Suite};
use wraith_noise::Window;
use wraith_session::{SESSION_WINDOW, Session};

use crate::contest::{self, Contestant, Row};

fn pair(suite: Suite) -> [Session; 2] {
    [Session::new(suite, &[1; 32], &[2; 32]), Session::new(suite, &[2; 32], &[1; 32])]
}

/// Creates both ends of a transport of snow.
fn snow_pair(cipher: &str) -> [StatelessTransportState; 2] {
    let params = || format!("Noise_NN_25519_{cipher}_BLAKE2s").parse().expect("a name of snow");
    let mut one = snow::Builder::new(params()).build_initiator().expect("nothing is needed");
    let mut two = snow::Builder::new(params()).build_responder().expect("nothing is needed");
    let (mut message, mut payload) = ([0; 512], [0; 512]);
    let len = one.write_message(&[], &mut message).expect("its turn");
    two.read_message(&message[..len], &mut payload).expect("authentic");
    let len = two.write_message(&[], &mut message).expect("its turn");
    one.read_message(&message[..len], &mut payload).expect("authentic");
    [one, two].map(|side| side.into_stateless_transport_mode().expect("over"))
}

fn name(len: usize) -> &'static str {
    match len {
        64 => "64 B",
        1024 => "1 KiB",
        _ => "64 KiB",
    }
}

pub fn seal(len: usize) -> Row {
    let text = vec![7; len];
    let [mut aes, _] = pair(Suite::Aes256Gcm);
    let [mut chacha, _] = pair(Suite::ChaCha20Poly1305);
    let [snow_aes, _] = snow_pair("AESGCM");
    let [snow_chacha, _] = snow_pair("ChaChaPoly");
    let library = |suite| {
        AeadKey::with_implementation(suite, &[1; 32], Implementation::AwsLc).expect("it can")
    };
    let (library_aes, library_chacha) =
        (library(Suite::Aes256Gcm), library(Suite::ChaCha20Poly1305));
    let [mut out, mut out2, mut out3, mut out4] = [(); 4].map(|()| vec![0; len + 24]);
    let (mut own, mut own2) = (text.clone(), text.clone());
    let (mut nonce, mut nonce2) = (0u64, 0u64);
    let sealed = |key: &AeadKey, nonce: &mut u64, text: &mut [u8]| {
        *nonce += 1;
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&nonce.to_le_bytes());
        black_box(key.seal(bytes, &[], text));
    };
    let contestants = vec![
        Contestant::new("wraith, AES-256-GCM", || {
            aes.seal_into(b"", &text, &mut out).expect("room");
        }),
        Contestant::new("AWS-LC alone, AES-256-GCM, in place", || {
            sealed(&library_aes, &mut nonce, &mut own);
        }),
        Contestant::new("snow, AESGCM", || {
            snow_aes.write_message(1, &text, &mut out2).expect("room");
        }),
        Contestant::new("wraith, ChaCha20-Poly1305", || {
            chacha.seal_into(b"", &text, &mut out3).expect("room");
        }),
        Contestant::new("AWS-LC alone, ChaCha20-Poly1305, in place", || {
            sealed(&library_chacha, &mut nonce2, &mut own2);
        }),
        Contestant::new("snow, ChaChaPoly", || {
            snow_chacha.write_message(1, &text, &mut out4).expect("room");
        }),
    ];
    contest::run(&format!("seal {}", name(len)), contestants)
}

/// Opens messages in order; each is a separate message that was sealed before.
fn opens<'a>(label: &'static str, suite: Suite, text: &'a [u8]) -> Contestant<'a> {
    let [mut one, mut two] = pair(suite);
    let seal = move |_| {
        let mut message = Vec::new();
        one.seal(b"", text, &mut message).expect("short");
        message
    };
    let mut seal = seal;
    Contestant::prepared(
        label,
        move |count| (0..count).map(&mut seal).collect(),
        move |mut message: Vec<u8>| {
            let (_, opened) = two.open_in_place(b"", &mut message).expect("authentic");
            assert_eq!(opened.len(), text.len());
            black_box(opened);
        },
    )
}

fn snow_opens<'a>(label: &'static str, cipher: &str, text: &'a [u8]) -> Contestant<'a> {
    let [one, two] = snow_pair(cipher);
    let next = RefCell::new(0u64);
    let mut out = vec![0; text.len() + 16];
    Contestant::prepared(
        label,
        move |count| {
            let seal = |_| {
                let mut message = vec![0; text.len() + 16];
                let mut next = next.borrow_mut();
                *next += 1;
                one.write_message(*next, text, &mut message).expect("room");
                (*next, message)
            };
            (0..count).map(seal).collect()
        },
        move |(nonce, message): (u64, Vec<u8>)| {
            let len = two.read_message(nonce, &message, &mut out).expect("authentic");
            assert_eq!(len, text.len());
            black_box(&out);
        },
    )
}

pub fn open(len: usize) -> Row {
    let text = vec![7; len];
    let contestants = vec![
        opens("wraith, AES-256-GCM, with its window", Suite::Aes256Gcm, &text),
        snow_opens("snow, AESGCM, without one", "AESGCM", &text),
        opens("wraith, ChaCha20-Poly1305, with its window", Suite::ChaCha20Poly1305, &text),
        snow_opens("snow, ChaChaPoly, without one", "ChaChaPoly", &text),
    ];
    contest::run(&format!("open {}", name(len)), contestants)
}

pub fn batch() -> Row {
    let texts = vec![vec![7; 1024]; 100];
    let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
    let [mut many, _] = pair(Suite::Aes256Gcm);
    let [mut single, _] = pair(Suite::Aes256Gcm);
    let contestants = vec![
        Contestant::new("seal_many", || {
            black_box(many.seal_many(b"", &texts).expect("short"));
        }),
        Contestant::new("seal, a hundred times", || {
            for text in &texts {
                let mut out = Vec::new();
                single.seal(b"", text, &mut out).expect("short");
                black_box(out);
            }
        }),
    ];
    contest::run("batch of 100 × 1 KiB", contestants)
}

/// Every number is new: in order, or shuffled within a window's length in an order that no cache
/// predicts.
pub fn window(random: bool) -> Row {
    let mut window = Window::<{ SESSION_WINDOW as usize / 64 }>::new();
    let mut next = 0u64;
    let work = move || {
        let number = match random {
            // An odd multiple visits every remainder once.
            true => next - next % SESSION_WINDOW + next.wrapping_mul(1_103) % SESSION_WINDOW,
            false => next,
        };
        next += 1;
        assert!(window.insert(black_box(number)));
    };
    let name = if random { "replay window, random" } else { "replay window, in order" };
    contest::run(name, vec![Contestant::new("wraith, 2048 numbers", work)])
}
