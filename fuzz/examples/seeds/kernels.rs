//! Inputs of the targets that compare kernels: every operation, with lengths around the borders of
//! the kernels' blocks and groups. Texts are pseudorandom, so that the files are short.

use super::save;

/// Lengths in bytes around the borders of blocks, of groups of them, and of pieces.
const LENS: [u16; 20] =
    [0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 511, 513, 777, 1023, 1025, 1280, 1500, 1599];
/// The same in blocks.
const BLOCKS: [u16; 15] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 33, 65, 99];
/// Places of buffers: at both inaccessible pages, at other offsets, and on the heap.
const PLACES: [u8; 6] = [0, 64, 64 + 1, 128 + 7, 192, 192 + 33];

/// Builds an input.
#[derive(Clone, Default)]
struct Seed(Vec<u8>);

impl Seed {
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn number(mut self, number: u16) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn place(self, index: usize) -> Self {
        self.byte(PLACES[index % PLACES.len()])
    }

    /// Content of pseudorandom bytes.
    fn random(self, index: usize) -> Self {
        self.byte(2).number(index as u16 * 7 + 1)
    }

    /// Content of one byte, repeated.
    fn repeated(self, byte: u8) -> Self {
        self.byte(1).byte(byte)
    }

    /// Content that is in the input.
    fn own(mut self, bytes: &[u8]) -> Self {
        self.0.push(0);
        self.0.extend(bytes);
        self
    }
}

/// Returns the element of `all` after many rounds.
fn cycle<T: Copy>(all: &[T], index: usize) -> T {
    all[index % all.len()]
}

pub(crate) fn save_all() -> std::io::Result<()> {
    write("kernel_aes", aes())?;
    write("kernel_aes_gcm", aes_gcm())?;
    write("kernel_ghash", ghash())?;
    write("kernel_chacha", chacha())?;
    write("kernel_poly1305", poly1305())?;
    write("kernel_sm4", sm4())?;
    write("kernel_sm3", sm3())?;
    write("kernel_sha512", sha512())?;
    write("kernel_keccak", keccak())?;
    write("kernel_sm2", sm2())?;
    write("kernel_p256", p256())?;
    write("kernel_inverse", inverse())?;
    write("kernel_pieces", pieces())
}

fn write(target: &str, seeds: impl IntoIterator<Item = Seed>) -> std::io::Result<()> {
    save(target, &seeds.into_iter().map(|Seed(bytes)| bytes).collect::<Vec<_>>())
}

/// Every mode with every key length, and counters that overflow soon.
fn aes() -> Vec<Seed> {
    let case = |i: usize, operation: u8, key: u8, wrap: u8| {
        let blocks = if operation < 13 { cycle(&BLOCKS, 4 * i + 1) } else { 0 };
        let seed = Seed::of(&[operation, key]).random(i).random(i + 1);
        let seed = match operation {
            // The two keys of a pair, and a block.
            13.. => Seed::of(&[operation, key]).random(i).random(i + 1).random(i + 2),
            _ => seed.number(blocks).random(i + 2).place(i).number(blocks / 2),
        };
        seed.byte(wrap).byte(17).random(i + 3).random(i + 4).random(i + 5)
    };
    let all = (0..42).map(|i| case(i, (i % 14) as u8, (i / 14) as u8, 0));
    let wrapping = (0..6).map(|i| case(11 + 5 * i, 7, (i % 3) as u8, 1 + (i % 3) as u8));
    all.chain(wrapping).collect()
}

fn aes_gcm() -> Vec<Seed> {
    let case = |i: usize| {
        let len = cycle(&LENS, i);
        // 12 bytes, two other lengths, and one with which the counter overflows.
        let nonce = [0, 112 + 1, 112, 112 + 61, 112][i % 5];
        let before = cycle(&[0, 1, 3, 15, 16, 33, 60], i / 5);
        let seed =
            Seed::of(&[(i % 3) as u8, nonce, before]).number(cycle(&LENS, 7 * i) % 600).number(len);
        let seed = seed.place(i).place(i + 1).place(i + 2).number(len / 3);
        let seed = (1..5).fold(seed, |seed, part| seed.number(len / 7 * part));
        seed.random(i).random(i + 1).random(i + 2).random(i + 3)
    };
    (0..40).map(case).collect()
}

fn ghash() -> Vec<Seed> {
    let case = |i: usize| {
        let seed = Seed::default().place(i).number(LENS[i]).number(LENS[i] / 32);
        let seed = match i % 4 {
            0 => seed.repeated(0xff),
            _ => seed.random(i),
        };
        seed.random(i + 1).random(i + 2)
    };
    (0..LENS.len()).map(case).collect()
}

fn chacha() -> Vec<Seed> {
    let lens = LENS.into_iter().chain([191, 193, 448, 449, 704, 705, 1088, 2047, 2049, 2500, 3299]);
    let case = |(i, len): (usize, u16)| {
        let seed = Seed::of(&[(i % 4) as u8]).number(cycle(&LENS, 3 * i) % 300).number(len);
        seed.place(i).place(i + 1).random(i).random(i + 1).random(i + 2).random(i + 3)
    };
    lens.enumerate().map(case).collect()
}

/// For each r and s, blocks of ones and zeros, and blocks that lead the sum to an edge.
fn poly1305() -> Vec<Seed> {
    let case = |i: usize| {
        let half = |seed: Seed, kind: u8| match kind {
            4 => seed.byte(4).byte(124),
            5 => seed.byte(5).random(i),
            _ => seed.byte(kind),
        };
        let seed = half(half(Seed::default(), (i % 6) as u8), (i / 6 % 6) as u8);
        let seed = seed.number(cycle(&BLOCKS, i) % 20).number(cycle(&BLOCKS, 2 * i));
        let seed = seed.place(i).place(i + 1).number(cycle(&LENS, i) % 700).byte((i % 16) as u8);
        let seed = match i % 3 {
            0 => seed.byte(0),
            1 => seed.byte(1),
            _ => seed.byte(2).random(i),
        };
        (0..40).fold(seed, |seed, block| match i % 4 {
            0 => seed.byte(0),
            1 => seed.byte(7 + block % 8),
            2 => seed.byte(block % 5),
            _ => seed.byte(if block % 5 == 4 { 8 + block % 7 } else { 0 }),
        })
    };
    // The sum of the kernel's lanes carries into its last word.
    let carrying: [&[u8]; 3] =
        [&[0x1d, 0x1c, 0xa2], &[5, 0x9c, 0, 4, 0xcc, 4], &[5, 0xfc, 0x92, 1, 0x4a, 1, 0, 2]];
    (0..48).map(case).chain(carrying.map(Seed::of)).collect()
}

fn sm4() -> Vec<Seed> {
    let case = |i: usize| {
        let blocks = cycle(&BLOCKS, i);
        let seed = Seed::of(&[(i % 10) as u8]).random(i).random(i + 1);
        let seed = seed.number(blocks).number(blocks / 2).place(i).place(i + 1);
        seed.byte((i / 10) as u8 % 4 + 4 * 9).byte((i % 16) as u8).random(i + 2).random(i + 3)
    };
    // In one piece, with as many blocks as a kernel takes at once; the lowest bytes of the counters
    // overflow.
    let whole = |i: usize| {
        let seed = Seed::of(&[[0, 1, 4, 5][i % 4]]).random(i).random(i + 1);
        let seed = seed.number(cycle(&[64, 65, 99], i)).number(0).place(i).place(i + 1);
        seed.byte((i / 4) as u8 + 4 * 9).byte((i % 16) as u8).random(i + 2).random(i + 3)
    };
    (0..40).map(case).chain((0..16).map(whole)).collect()
}

fn sm3() -> Vec<Seed> {
    let case = |i: usize| {
        let seed = Seed::default().place(i).number(LENS[i]);
        let seed = (1..5).fold(seed, |seed, part| seed.number(LENS[i] / 7 * part));
        seed.random(i).random(i + 1)
    };
    (0..LENS.len()).map(case).collect()
}

fn sha512() -> Vec<Seed> {
    let case = |i: usize| Seed::default().place(i).number(i as u16).random(i).random(i + 1);
    (0..16).map(case).collect()
}

fn keccak() -> Vec<Seed> {
    (0..8).map(|i| Seed::default().number(i as u16).random(i)).collect()
}

/// A number of each kind: small, near the order or the prime, a power of two, ones, and any.
fn edge(seed: Seed, kind: usize) -> Seed {
    let seed = seed.byte([1, 2, 9, 5, 3, 0, 1][kind % 7]).byte((kind % 7) as u8);
    match kind % 7 {
        3 | 4 => seed.byte((kind * 5 % 32) as u8),
        6 => seed.random(kind),
        _ => seed,
    }
}

fn sm2() -> Vec<Seed> {
    let point = |seed: Seed, i: usize| edge(seed, i).byte((i % 6) as u8);
    let case = |i: usize| {
        let seed = edge(Seed::of(&[(i % 6) as u8]), i / 6 * 3 + i % 6);
        match i % 6 {
            1 => point(seed, i / 6),
            2 => edge(point(point(seed, i / 6), i / 2), i / 3),
            3 => edge(point(edge(seed, i / 6), i / 5), i / 4),
            _ => edge(edge(edge(seed, i / 6), i / 5), i / 4),
        }
    };
    (0..48).map(case).collect()
}

fn p256() -> Vec<Seed> {
    let same = [
        0xffc0_0000_fff8_0000_u64,
        0xffff_0000_0000_1fff,
        0xbce6_f952_58e8_6104,
        0xf3b9_cacd_039c_daaf,
    ];
    // The last sum of this scalar is of equal points.
    let same = Seed::of(&[0, 6]).own(same.map(u64::to_be_bytes).as_flattened());
    (0..28).map(|i| edge(Seed::default(), i)).chain([same]).collect()
}

fn inverse() -> Vec<Seed> {
    let case = |i: usize| {
        // Any modulus; one limb, ones and a low top limb; the largest number, and a small one.
        let kind = [43, 40, 41, 42, 35, 11][i / 6];
        Seed::of(&[kind]).random(i).random(i + 1)
    };
    (0..36).map(case).collect()
}

/// Every hash function, MAC, cipher and AEAD.
fn pieces() -> Vec<Seed> {
    let counts = [17, 23, 23, 16];
    let all = (0..4).flat_map(|kind| (0..counts[kind]).map(move |which| (kind, which)));
    let case = |(kind, which): (usize, usize)| {
        let len = cycle(&LENS, kind + 7 * which) / 16 * 16;
        let seed = Seed::of(&[kind as u8, which as u8]).place(which).number(len);
        let seed = (1..5).fold(seed, |seed, part| seed.number(len / 7 * part));
        seed.random(which).random(which + 1).random(which + 2)
    };
    all.map(case).collect()
}
