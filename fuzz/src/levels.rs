//! Runs the same computation by each kernel and by the portable twins.

use std::fmt::Debug;
use std::sync::{Mutex, Once, PoisonError};

use wraith_kernels::detect::{Backends, KernelState, Level};

/// Each level has the kernels of the ones before it. At the first one, only the twins are used.
const LEVELS: [Level; 4] = [Level::Off, Level::AesNi, Level::Avx2, Level::Avx512];

/// Returns the result of `compute`, which has to be the same at every level.
pub(crate) fn same<T: Debug + PartialEq>(mut compute: impl FnMut() -> T) -> T {
    let twin = at(LEVELS[0], &mut compute);
    for level in LEVELS.into_iter().skip(1) {
        let found = at(level, &mut compute);
        assert_eq!(found, twin, "{level:?}, and the portable twin");
    }
    twin
}

/// Runs `compute` with all kernels up to `level`. The choice is the process's, so that one thread at
/// a time has it.
pub(crate) fn at<T>(level: Level, compute: impl FnOnce() -> T) -> T {
    /// Ends the choice.
    struct Chosen;
    impl Drop for Chosen {
        fn drop(&mut self) {
            Backends::choose(None);
        }
    }
    static ONE: Mutex<()> = Mutex::new(());
    static CHECKED: Once = Once::new();
    // A kernel that fails its self-test would not be used, and nothing would be compared.
    CHECKED.call_once(|| {
        for kernel in wraith_kernels::kernels() {
            assert_ne!(kernel.state(), KernelState::Failed, "{}", kernel.name());
        }
    });
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Backends::choose_up_to(level);
    let _chosen = Chosen;
    compute()
}

/// Runs `compute` with every kernel that this processor has.
pub(crate) fn fastest<T>(compute: impl FnOnce() -> T) -> T {
    at(Level::Avx512, compute)
}

/// Runs `compute` without kernels.
pub(crate) fn portable<T>(compute: impl FnOnce() -> T) -> T {
    at(Level::Off, compute)
}
