//! The selection of kernels at run time. This file alone asks the processor for its features.
//!
//! A [`Kernel`] is used only if all of these hold:
//!
//! 1. its cargo feature compiles it;
//! 2. the processor has its instructions, and `WRAITH_KERNELS` does not hide them ([`Level`]);
//! 3. its self-test passed, once a process, before its first use;
//! 4. [`Backends`] permit it now.
//!
//! Otherwise the caller takes a library or the portable twin. A kernel that fails its self-test
//! stays off for the process, and an error is logged.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The implementations that the process prefers.
///
/// The process starts with the value of the variable `WRAITH_BACKENDS`: `conservative`, `fast`, or
/// nothing. Any other value counts as `conservative`. [`Backends::request`] can make the choice
/// more conservative, and [`Backends::choose`] replaces it. Without a choice, kernels for
/// [`Purpose::Bulk`] are used and those for [`Purpose::Keys`] are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backends {
    /// Libraries, and portable twins where no library has the algorithm. No kernel.
    Conservative,
    /// Every kernel that passes its self-test.
    Fast,
}

impl Backends {
    /// Both choices.
    pub const ALL: [Self; 2] = [Self::Conservative, Self::Fast];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conservative => "conservative",
            Self::Fast => "fast",
        }
    }

    /// Returns the choice of the process, or `None` if nothing was chosen.
    #[must_use]
    pub fn chosen() -> Option<Self> {
        match choice() {
            CONSERVATIVE => Some(Self::Conservative),
            FAST => Some(Self::Fast),
            _ => None,
        }
    }

    /// Sets the choice of the process. It applies to objects that are created from now on, such as
    /// keys.
    pub fn choose(choice: Option<Self>) {
        let choice = match choice {
            Some(Self::Conservative) => CONSERVATIVE,
            Some(Self::Fast) => FAST,
            None => BY_PURPOSE,
        };
        CHOICE.store(choice, Relaxed);
    }

    /// Requests this choice for the process. The most conservative of all requests and
    /// `WRAITH_BACKENDS` wins.
    pub fn request(self) {
        choice();
        let requested = if self == Self::Conservative { CONSERVATIVE } else { FAST };
        CHOICE.fetch_max(requested, Relaxed);
    }

    /// Permits the kernels of every purpose up to `level`, whatever others request. For tests that
    /// compare the kernels of one algorithm.
    #[doc(hidden)]
    pub fn choose_up_to(level: Level) {
        CHOICE.store(UP_TO + level as u8, Relaxed);
    }
}

impl fmt::Display for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: the text names none of [`Backends::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownBackends;

impl fmt::Display for UnknownBackends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown backends: 'conservative' and 'fast' exist")
    }
}

impl std::error::Error for UnknownBackends {}

impl FromStr for Backends {
    type Err = UnknownBackends;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|each| each.name() == name).ok_or(UnknownBackends)
    }
}

// In this order `fetch_max` lets any request replace no choice, and conservative replace fast.
const BY_PURPOSE: u8 = 0;
const FAST: u8 = 1;
const CONSERVATIVE: u8 = 2;

/// Nothing has read `WRAITH_BACKENDS` yet.
const UNREAD: u8 = 3;

/// This plus a level: all kernels up to the level.
const UP_TO: u8 = 4;

/// The choice of the process.
static CHOICE: AtomicU8 = AtomicU8::new(UNREAD);

#[inline]
fn choice() -> u8 {
    match CHOICE.load(Relaxed) {
        UNREAD => read_choice(),
        choice => choice,
    }
}

/// Reads the variable. An unknown value is [`Backends::Conservative`], because it was meant to
/// exclude something.
#[cold]
fn read_choice() -> u8 {
    let choice = match std::env::var_os("WRAITH_BACKENDS") {
        None => BY_PURPOSE,
        Some(name) if name == "fast" => FAST,
        Some(name) if name.is_empty() => BY_PURPOSE,
        Some(_) => CONSERVATIVE,
    };
    match CHOICE.compare_exchange(UNREAD, choice, Relaxed, Relaxed) {
        Ok(_) => choice,
        Err(other) => other,
    }
}

/// The data that a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Packets, hashes and bulk encryption. Used unless [`Backends::Conservative`] is chosen.
    Bulk,
    /// Key generation, signatures, agreements and encryption to a key. Used only if
    /// [`Backends::Fast`] is chosen.
    Keys,
}

/// Levels of instruction sets, in ascending order. Each includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// None: every kernel is off.
    Off,
    /// AES-NI, PCLMULQDQ and SSE.
    AesNi,
    /// AVX2, BMI, ADX, and VAES, VPCLMULQDQ and GFNI with vectors of 256 bits.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl Level {
    /// Returns the highest level in use: the value of `WRAITH_KERNELS` (`off`, `aesni`, `avx2`,
    /// `avx512`) when the process first needed it. An empty value hides nothing. An unknown value is
    /// [`Level::Off`], because it was meant to hide something.
    #[must_use]
    pub fn highest() -> Self {
        static HIGHEST: OnceLock<Level> = OnceLock::new();
        *HIGHEST.get_or_init(|| match std::env::var_os("WRAITH_KERNELS") {
            None => Self::Avx512,
            Some(name) if name == "avx512" || name.is_empty() => Self::Avx512,
            Some(name) if name == "avx2" => Self::Avx2,
            Some(name) if name == "aesni" => Self::AesNi,
            Some(_) => Self::Off,
        })
    }
}

/// State of a kernel in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// The processor lacks an instruction, or `WRAITH_KERNELS` hides it.
    Unsupported,
    /// The self-test found a wrong result.
    Failed,
    /// The self-test passed. [`Backends`] decide about the use.
    Ready,
}

const UNKNOWN: u8 = 0;
const UNSUPPORTED: u8 = 1;
const READY: u8 = 2;
/// The largest, for `fetch_max`: no other result replaces it.
const FAILED: u8 = 3;

/// A kernel with its requirements and its self-test.
pub struct Kernel {
    name: &'static str,
    features: &'static str,
    level: Level,
    purpose: Purpose,
    has_features: fn() -> bool,
    self_test: fn() -> bool,
    state: AtomicU8,
}

/// Defines `features` of a module with one kernel.
#[allow(unused_macros, reason = "without these modules")]
macro_rules! features {
    ($kernel:expr) => {
        /// Returns the processor features in use, or `None` without the kernel.
        #[must_use]
        pub fn features() -> Option<&'static str> {
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            if $kernel.is_available() {
                return Some($kernel.features());
            }
            None
        }
    };
}
#[allow(unused_imports, reason = "without these modules")]
pub(crate) use features;

impl Kernel {
    pub(crate) const fn new(
        name: &'static str,
        (level, features, has_features): (Level, &'static str, fn() -> bool),
        purpose: Purpose,
        self_test: fn() -> bool,
    ) -> Self {
        let state = AtomicU8::new(UNKNOWN);
        Self { name, features, level, purpose, has_features, self_test, state }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the processor features in use, for people.
    #[must_use]
    pub const fn features(&self) -> &'static str {
        self.features
    }

    /// Returns the data that the kernel works on.
    #[must_use]
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns whether to use the kernel now. The first call runs the self-test.
    #[must_use]
    #[inline]
    pub fn is_available(&self) -> bool {
        let permitted = match (choice(), self.purpose) {
            (CONSERVATIVE, _) => false,
            (up_to @ UP_TO.., _) => UP_TO + self.level as u8 <= up_to,
            (FAST, _) | (_, Purpose::Bulk) => true,
            (_, Purpose::Keys) => false,
        };
        permitted && self.is_ready()
    }

    /// Returns whether the processor has the instructions and the self-test passed.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        match self.state.load(Relaxed) {
            UNKNOWN => self.test() == READY,
            state => state == READY,
        }
    }

    /// Returns the state. The first call runs the self-test.
    #[must_use]
    pub fn state(&self) -> KernelState {
        let state = match self.state.load(Relaxed) {
            UNKNOWN => self.test(),
            state => state,
        };
        match state {
            UNSUPPORTED => KernelState::Unsupported,
            FAILED => KernelState::Failed,
            _ => KernelState::Ready,
        }
    }

    /// Returns whether the processor has the instructions, without a self-test.
    pub(crate) fn is_supported(&self) -> bool {
        self.level <= Level::highest() && (self.has_features)()
    }

    /// Runs the self-test. If several threads get here at the same time, each runs it on inputs of
    /// its own, and one failure is enough.
    #[cold]
    fn test(&self) -> u8 {
        let state = match self.is_supported() {
            false => UNSUPPORTED,
            true if (self.self_test)() => READY,
            true => FAILED,
        };
        let before = self.state.fetch_max(state, Relaxed);
        if state == FAILED && before != FAILED {
            tracing::error!(
                kernel = self.name,
                features = self.features,
                "the self-test of a kernel found a wrong result; a library or portable code \
                 computes instead. Please report this with the output of `wraith doctor`"
            );
        }
        before.max(state)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns whether this processor has instructions for AES and GHASH. Without them
/// ChaCha20-Poly1305 is the faster packet suite.
#[must_use]
pub fn aes_hardware() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        // On AArch64 "aes" includes the polynomial multiplication that GHASH needs.
        std::arch::is_aarch64_feature_detected!("aes")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    {
        false
    }
}

/// Requirements of kernels: the level, the features for people, and the test for them.
pub(crate) mod needs {
    use super::Level;

    pub(crate) type Need = (Level, &'static str, fn() -> bool);

    macro_rules! need {
        ($name:ident, $level:ident, $text:literal, $($feature:tt)+) => {
            pub(crate) const $name: Need = (Level::$level, $text, || {
                #[cfg(target_arch = "x86_64")]
                {
                    $(std::arch::is_x86_feature_detected!($feature))&&+
                }
                #[cfg(not(target_arch = "x86_64"))]
                {
                    false
                }
            });
        };
    }

    need!(AES_BLOCK, AesNi, "AES-NI", "aes" "ssse3");
    need!(AES_128, AesNi, "AES-NI", "aes" "pclmulqdq" "ssse3");
    need!(AES_256, Avx2, "VAES", "aes" "pclmulqdq" "ssse3" "avx2" "vaes" "vpclmulqdq");
    need!(AES_512, Avx512, "AVX-512, VAES",
        "aes" "pclmulqdq" "ssse3" "avx2" "vaes" "vpclmulqdq" "avx512f" "avx512bw");
    need!(GCM_256, Avx2, "VAES, VPCLMULQDQ", "aes" "pclmulqdq" "avx2" "vaes" "vpclmulqdq");
    need!(GCM_512, Avx512, "AVX-512, VAES, VPCLMULQDQ",
        "aes" "pclmulqdq" "avx2" "vaes" "vpclmulqdq" "avx512f" "avx512bw");
    need!(GHASH_128, Avx2, "AVX2, PCLMULQDQ", "avx2" "pclmulqdq");
    need!(GHASH_512, Avx512, "AVX-512, VPCLMULQDQ",
        "avx2" "pclmulqdq" "avx512f" "avx512bw" "vpclmulqdq");
    need!(CHACHA20, Avx512, "AVX-512, IFMA",
        "avx512f" "avx512vl" "avx512bw" "avx512ifma" "bmi2");
    need!(SM4_GFNI, Avx2, "AVX2, GFNI", "avx2" "gfni");
    need!(SM4_AVX512, Avx512, "AVX-512, GFNI", "avx2" "gfni" "avx512f" "avx512bw" "avx512vl");
    need!(AVX512_BMI2, Avx512, "AVX-512, BMI2",
        "avx512f" "avx512bw" "avx512vl" "bmi1" "bmi2");
    need!(ADX, Avx2, "BMI2, ADX", "adx" "bmi2");
    need!(AVX2, Avx2, "AVX2", "avx2");
    need!(AVX512, Avx512, "AVX-512", "avx512f" "avx512bw");
    need!(IFMA_ADX, Avx512, "AVX-512, IFMA, BMI2, ADX", "adx" "bmi2" "avx512f" "avx512ifma");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn one_failure_of_several_threads_is_enough() {
        static CALLS: AtomicU8 = AtomicU8::new(0);
        static HAS_FAILED: AtomicBool = AtomicBool::new(false);
        static KERNEL: Kernel =
            Kernel::new("test", (Level::Off, "none", || true), Purpose::Bulk, || {
                // The first thread succeeds after the second one has failed.
                let is_first = CALLS.fetch_add(1, Relaxed) == 0;
                while is_first && !HAS_FAILED.load(Relaxed) {
                    std::thread::yield_now();
                }
                is_first
            });
        std::thread::scope(|scope| {
            let first = scope.spawn(|| KERNEL.is_ready());
            while CALLS.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            assert!(!KERNEL.is_ready());
            HAS_FAILED.store(true, Relaxed);
            assert!(!first.join().unwrap());
        });
        assert_eq!(KERNEL.state(), KernelState::Failed);
    }
}
