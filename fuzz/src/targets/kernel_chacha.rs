//! ChaCha20-Poly1305 and XChaCha20-Poly1305. Invariant: the kernel, the portable twin and AWS-LC
//! compute the same; what is sealed is opened.

use wraith_aws_lc::aead::{Aead, AeadKey};
use wraith_kernels::chacha20_poly1305::{Key, portable};

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::fastest;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let is_long = input.byte() % 4 == 0;
    // A piece of the kernel has 1024 bytes.
    let (aad_len, len) = (input.below(300), input.below(3300));
    let [place, aad_place] = [(); 2].map(|()| input.place());
    let (key, nonce): ([u8; 32], [u8; 24]) = (input.content_array(), input.content_array());
    let (aad, text) = (input.content(aad_len), input.content(len));
    let short = nonce.first_chunk().expect("12 of 24 bytes");

    let mut sealed = text.clone();
    let tag = match is_long {
        true => AeadKey::new(Aead::XChaCha20Poly1305, &key)
            .and_then(|key| key.seal(&nonce, &aad, &mut sealed)),
        false => AeadKey::new(Aead::ChaCha20Poly1305, &key)
            .and_then(|key| key.seal(short, &aad, &mut sealed)),
    };
    let tag = tag.expect("AWS-LC takes this key and this nonce");
    if !is_long {
        let mut twin = text.clone();
        assert_eq!(portable(true, &key, short, &aad, &mut twin), tag, "the twin seals");
        assert_eq!(twin, sealed, "the twin seals");
        assert_eq!(portable(false, &key, short, &aad, &mut twin), tag, "the twin opens");
        assert_eq!(twin, text, "the twin opens");
    }
    let Some(key) = fastest(|| Key::new(&key)) else { return };
    let (mut found, aad) = (Buffer::new(place, &text), Buffer::new(aad_place, &aad));
    let crypt = |seal, text: &mut [u8]| match is_long {
        true => key.crypt_long(seal, &nonce, &aad, text),
        false => key.crypt(seal, short, &aad, text),
    };
    assert_eq!(crypt(true, &mut found), tag, "the kernel seals");
    assert_eq!(*found, sealed, "the kernel seals");
    assert_eq!(crypt(false, &mut found), tag, "the kernel opens");
    assert_eq!(*found, text, "the kernel opens");
}
