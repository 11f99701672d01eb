//! The ids of all processes: the directories of `/proc` that are numbers.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::RawDir;

/// Some 600 names per call.
const BUFFER_BYTES: usize = 16 * 1024;

/// Lists processes repeatedly without allocating each time.
pub struct Pids {
    buffer: Vec<u8>,
}

impl Pids {
    pub fn new() -> Self {
        Self { buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Calls `each` with the number of every process. The kernel takes a microsecond for each.
    pub fn list(&mut self, proc: &Path, mut each: impl FnMut(u32)) -> io::Result<()> {
        let mut entries = RawDir::new(File::open(proc)?, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            if let Some(pid) = number(entry?.file_name().to_bytes()) {
                each(pid);
            }
        }
        Ok(())
    }
}

fn number(name: &[u8]) -> Option<u32> {
    // `parse` would also accept a sign.
    let digits = name.iter().all(u8::is_ascii_digit).then_some(name)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
