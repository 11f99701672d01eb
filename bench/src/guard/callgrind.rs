//! Tells callgrind what to count. Without callgrind it only does the work.

#![allow(unsafe_code, reason = "callgrind is spoken to by instructions that no compiler writes")]

use std::ffi::CString;

/// How often a path is counted. Something else, such as a timer, may fall into some of the counts; `scripts/guard` chooses a low one.
pub const ROUNDS: usize = 5;

/// Requests of `valgrind/callgrind.h`, which promises not to change them.
const ZERO: usize = 0x4354_0001;
const DUMP: usize = 0x4354_0003;
const START: usize = 0x4354_0004;
const STOP: usize = 0x4354_0005;

/// Counts the instructions of all threads while `work` is done `times` times: one dump per round, named `NAME TIMES`. It runs
/// one round uncounted before, so that caches are filled.
///
/// Many rounds of one time suit work that several threads share: how they meet adds to most of them, and seldom to none of a few.
pub fn count(name: &str, rounds: usize, times: usize, mut work: impl FnMut()) {
    let mut round = || (0..times).for_each(|_| work());
    round();
    let label = CString::new(format!("{name} {times}")).unwrap();
    request(START, 0);
    for _ in 0..rounds {
        request(ZERO, 0);
        round();
        request(DUMP, label.as_ptr() as usize);
    }
    request(STOP, 0);
}

/// A client request as `valgrind/valgrind.h` defines it.
#[cfg(target_arch = "x86_64")]
fn request(number: usize, argument: usize) {
    let arguments = [number, argument, 0, 0, 0, 0];
    // SAFETY: on a processor `rdi` is turned around once as a whole and `rbx` is exchanged with itself. Valgrind knows the
    // sequence, reads the arguments, and writes `rdx`.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") 0_usize => _,
            options(nostack),
        );
    }
}

/// The sequence is another one, and so would the counts be.
#[cfg(not(target_arch = "x86_64"))]
fn request(_number: usize, _argument: usize) {}
