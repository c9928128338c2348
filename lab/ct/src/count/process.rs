//! One run of an operation in a process of its own, and the counters of its instructions.
//!
//! A fork gives each run the same memory, heap and random generator, so only the secret can make a
//! difference. Two tools count:
//!
//! - [`Tool::Valgrind`]: the program runs under callgrind, which writes a file for each process.
//! - [`Tool::Steps`]: the processor traps after each instruction (the flag TF). This is slow, but
//!   counts on the real processor, also vector instructions that valgrind lacks. It also hashes the
//!   addresses of all instructions, so two paths of one length differ, too.
//!
//! `unsafe` code is only here in this crate.
#![allow(unsafe_code)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context as _, Result, ensure};

use super::Prepared;

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Callgrind, under which the program runs.
    Valgrind,
    /// A trap after each instruction.
    Steps,
}

/// Runs the operation once, so that everything is computed that it computes only once.
pub fn warm_up(prepared: &Prepared) {
    let bytes = &prepared.secrets[0].bytes;
    prepared.before.iter().for_each(|before| before(bytes));
    (prepared.run)(black_box(bytes));
}

/// Makes forks keep the state of AWS-LC's random generator, so that all runs of an operation draw
/// the same bytes. Otherwise each run would collect entropy for longer than most operations take.
///
/// AWS-LC notices a fork by a page of memory that the kernel wipes in the new process.
///
/// # Errors
/// If the page is not found.
pub fn fix_randomness() -> Result<()> {
    black_box(wraith_suite::rand::bytes::<1>());
    let maps = std::fs::read_to_string("/proc/self/smaps")?;
    let (mut range, mut found) = ("", 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first.contains('-') {
            range = first;
        } else if first == "VmFlags:" && words.any(|flag| flag == "wf") {
            let ends = range.split_once('-');
            let (start, end) = ends.context("a line of smaps without a range")?;
            let [start, end] = [start, end].map(|end| usize::from_str_radix(end, 16));
            let (start, end) = (start?, end?);
            let page = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: changes the effect of a fork on a mapping, and no memory of this process.
            let kept = unsafe { libc::madvise(page, end - start, libc::MADV_KEEPONFORK) };
            ensure!(kept == 0, "cannot keep the random generator over forks");
            found += 1;
        }
    }
    ensure!(found > 0, "the page by which AWS-LC notices forks is not there");
    Ok(())
}

/// Runs the operation with each secret in a new process and returns the IDs of the processes.
///
/// With [`Tool::Steps`] a process prints `steps PID COUNT PATH` before it ends. PATH is a hash. It
/// writes the addresses of the first million instructions into the folder `trace`, relative to the
/// program, one a line. So `diff` finds where two paths part, and `addr2line` the code, if the
/// program has its symbols.
///
/// # Errors
/// If there is no process, or one fails.
pub fn counted(prepared: &Prepared, tool: Tool, trace: Option<&Path>) -> Result<Vec<i32>> {
    // The state of the heap decides how many instructions an allocation takes. So nothing is
    // allocated between two forks.
    let mut pids = Vec::with_capacity(prepared.secrets.len());
    // All runs read their secret at the same address, on which copies in the operation depend.
    let mut buffer = vec![0; prepared.secrets[0].bytes.len()];
    for secret in &prepared.secrets {
        // SAFETY: this process has one thread, so the new one has all locks free.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            buffer.copy_from_slice(&secret.bytes);
            prepared.before.iter().for_each(|before| before(&buffer));
            count_here(|| (prepared.run)(black_box(&buffer)), tool, trace);
            // SAFETY: ends this process, without the parent's handlers.
            unsafe { libc::_exit(0) }
        }
        ensure!(pid > 0, "cannot fork: {}", std::io::Error::last_os_error());
        let mut status = 0;
        // SAFETY: `status` is an integer of this function.
        let ended = unsafe { libc::waitpid(pid, &mut status, 0) };
        ensure!(ended == pid && status == 0, "the process of a secret failed with {status}");
        pids.push(pid);
    }
    Ok(pids)
}

/// Whether this system can run single steps.
pub const HAS_STEPS: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// Runs the operation of this process. Callgrind counts from the start of the operation to the end
/// of the process.
fn count_here(operation: impl FnOnce(), tool: Tool, trace: Option<&Path>) {
    match tool {
        Tool::Valgrind => {
            zero_callgrind();
            operation();
        }
        Tool::Steps => {
            let (count, path) = steps::counted(operation);
            report(count, path);
            if let Some(folder) = trace {
                let file = folder.join(std::process::id().to_string());
                std::fs::write(file, steps::trace()).expect("a trace can be written");
            }
        }
    }
}

/// Prints the result of single steps at once, beside the lines of the parent.
fn report(count: u64, path: u64) {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(line, "steps\t{}\t{count}\t{path:016x}", std::process::id());
    // The parent notices a missing line.
    let _ = std::io::stdout().write_all(line.as_bytes());
}

/// Sets callgrind's counts to zero. Does nothing outside of valgrind.
fn zero_callgrind() {
    #[cfg(target_arch = "x86_64")]
    {
        /// `VG_USERREQ__ZERO_STATS` of callgrind.h: tool 'C', 'T', request 1.
        const ZERO_STATS: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16 | 1;
        let request = [ZERO_STATS, 0, 0, 0, 0, 0];
        // SAFETY: valgrind's sequence for a request (valgrind.h). The rotations add up to 128 bits,
        // and the exchange changes nothing, so a processor does nothing but set flags.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") request.as_ptr(),
                inout("rdx") 0u64 => _,
                options(nostack),
            );
        }
    }
}

/// Single steps.
mod steps {
    use super::{AtomicU64, Relaxed};

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static PATH: AtomicU64 = AtomicU64::new(0);
    /// Addresses of the first instructions.
    static TRACE: [AtomicU64; 1 << 20] = [const { AtomicU64::new(0) }; 1 << 20];

    /// Returns the recorded addresses, relative to the program, one a line.
    pub(super) fn trace() -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let base = maps.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
        let base = base.unwrap_or_default();
        let addresses = TRACE.iter().map(|at| at.load(Relaxed)).take_while(|at| *at > 0);
        addresses.map(|at| format!("{:#x}\n", at.wrapping_sub(base))).collect()
    }

    /// Runs `operation` and returns the number of its instructions and a hash of their addresses.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn counted(operation: impl FnOnce()) -> (u64, u64) {
        /// An odd number with many ones (the golden ratio).
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

        extern "C" fn on_step(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
            // SAFETY: the kernel passes the context of the interrupted code.
            let context = unsafe { &*context.cast::<libc::ucontext_t>() };
            let at = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
            let count = COUNT.load(Relaxed);
            COUNT.store(count + 1, Relaxed);
            if let Some(place) = TRACE.get(count as usize) {
                place.store(at, Relaxed);
            }
            PATH.store((PATH.load(Relaxed).rotate_left(5) ^ at).wrapping_mul(FACTOR), Relaxed);
        }

        // SAFETY: the handler only uses atomic numbers. Setting and clearing the flag TF changes no
        // other state of the program.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_step as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
            std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
        }
        operation();
        // SAFETY: as above.
        unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
        (COUNT.load(Relaxed), PATH.load(Relaxed))
    }

    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub(super) fn counted(_: impl FnOnce()) -> (u64, u64) {
        unreachable!("the program refuses single steps here")
    }
}
