//! Hash functions, MACs, ciphers and AEADs of `wraith-suite` by name. Invariant: with and without
//! kernels, a message in pieces has the result of the message as a whole, and decryption undoes
//! encryption.

use wraith_suite::{aead, cipher, hash, mac};

use crate::guarded::{Buffer, Place};
use crate::input::Input;
use crate::levels::{portable, same};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (kind, which) = (input.byte() % 4, usize::from(input.byte()));
    let (place, len) = (input.place(), input.below(1600));
    let lens = [(); 4].map(|()| input.below(len + 1));
    let (key, iv): ([u8; 64], [u8; 32]) = (input.content_array(), input.content_array());
    let message = Message { place, lens, key, iv, text: input.content(len) };
    match kind {
        0 => message.hash(hash::Algorithm::ALL[which % hash::Algorithm::ALL.len()]),
        1 => message.mac(mac::Algorithm::ALL[which % mac::Algorithm::ALL.len()]),
        2 => message.cipher(cipher::Algorithm::ALL[which % cipher::Algorithm::ALL.len()]),
        _ => message.aead(aead::Algorithm::ALL[which % aead::Algorithm::ALL.len()]),
    }
}

struct Message {
    place: Place,
    /// The lengths of all pieces but the last.
    lens: [usize; 4],
    key: [u8; 64],
    iv: [u8; 32],
    text: Vec<u8>,
}

impl Message {
    /// Returns the text in pieces. All but the last are multiples of `unit`.
    fn pieces(&self, unit: usize) -> Vec<Buffer> {
        let mut rest = &self.text[..];
        let mut pieces = Vec::new();
        for len in self.lens {
            let (piece, later) = rest.split_at((len / unit * unit).min(rest.len() / unit * unit));
            pieces.push(Buffer::new(self.place, piece));
            rest = later;
        }
        pieces.push(Buffer::new(self.place, rest));
        pieces
    }

    fn hash(&self, algorithm: hash::Algorithm) {
        let digest = same(|| {
            let mut hasher = algorithm.hasher();
            self.pieces(1).iter().for_each(|piece| hasher.update(piece));
            let mut digest = vec![0; algorithm.digest_bytes()];
            hasher.finish_into(&mut digest);
            digest
        });
        assert_eq!(digest, portable(|| hash::digest(algorithm, &self.text)), "{algorithm}");
    }

    fn mac(&self, algorithm: mac::Algorithm) {
        let (key, nonce) = (
            &self.key[..algorithm.key_bytes().unwrap_or(self.key.len())],
            &self.iv[..algorithm.nonce_bytes()],
        );
        let start = || algorithm.start(key, nonce).expect("the lengths of the algorithm");
        let tag = |mac: Box<dyn mac::Mac>| {
            let mut tag = vec![0; algorithm.tag_bytes()];
            mac.finish_into(&mut tag);
            tag
        };
        let found = same(|| {
            let mut mac = start();
            self.pieces(1).iter().for_each(|piece| mac.update(piece));
            tag(mac)
        });
        let whole = portable(|| {
            let mut mac = start();
            mac.update(&self.text);
            tag(mac)
        });
        assert_eq!(found, whole, "{algorithm}");
    }

    fn cipher(&self, algorithm: cipher::Algorithm) {
        let (key, iv) = (&self.key[..algorithm.key_bytes()], &self.iv[..algorithm.iv_bytes()]);
        if algorithm.start(key, iv).is_err() {
            // The halves of a key of XTS are equal.
            return;
        }
        let start = || algorithm.start(key, iv).expect("it was started before");
        let is_xts = algorithm.name().ends_with("XTS");
        // A data unit of XTS has no pieces, and another mode may need whole blocks.
        let unit = match algorithm {
            _ if is_xts => usize::MAX,
            _ if algorithm.wants_whole_blocks() => cipher::BLOCK_BYTES,
            _ => 1,
        };
        let sealed = same(|| {
            let mut cipher = start();
            let mut pieces = self.pieces(unit);
            // An empty data unit is refused.
            pieces.retain(|piece| !is_xts || !piece.is_empty());
            let done = pieces.iter_mut().try_for_each(|piece| cipher.encrypt(piece));
            done.map(|()| pieces.iter().flat_map(|piece| piece.to_vec()).collect::<Vec<u8>>())
        });
        let mut whole = self.text.clone();
        let done = portable(|| start().encrypt(&mut whole));
        match sealed {
            Ok(sealed) if !whole.is_empty() => assert_eq!((done, sealed), (Ok(()), whole.clone())),
            Ok(_) => return,
            Err(_) => return assert!(done.is_err(), "{algorithm}"),
        }
        let opened = same(|| {
            let mut text = Buffer::new(self.place, &whole);
            start().decrypt(&mut text).expect("a length that was encrypted");
            text.to_vec()
        });
        assert_eq!(opened, self.text, "{algorithm}");
    }

    fn aead(&self, algorithm: aead::Algorithm) {
        let (key, nonce) =
            (&self.key[..algorithm.key_bytes()], &self.iv[..algorithm.nonce_bytes()]);
        let (aad, text) = self.text.split_at(self.lens[0].min(self.text.len()));
        let sealed = same(|| {
            let key = algorithm.key(key).expect("the length of the algorithm");
            let (mut text, mut tag) = (Buffer::new(self.place, text), [0; 16]);
            key.seal_detached(nonce, aad, &mut text, &mut tag).expect("a short text");
            (text.to_vec(), tag)
        });
        let opened = same(|| {
            let key = algorithm.key(key).expect("the length of the algorithm");
            let mut text = Buffer::new(self.place, &sealed.0);
            key.open_detached(nonce, aad, &mut text, &sealed.1).expect("it is authentic");
            text.to_vec()
        });
        assert_eq!(opened, text, "{algorithm}");
    }
}
