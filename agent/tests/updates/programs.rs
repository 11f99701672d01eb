//! Programs that a service may offer.

/// The agent itself.
pub fn agent() -> Vec<u8> {
    std::fs::read(env!("CARGO_BIN_EXE_signalbox-agent")).unwrap()
}

/// Ends at once, whatever its arguments.
pub fn exits() -> Vec<u8> {
    std::fs::read("/bin/true").unwrap()
}

/// What no kernel executes.
pub fn no_program() -> Vec<u8> {
    b"This is a text.\n".repeat(100)
}

/// Waits for ever, whatever its arguments: an ELF file of one segment.
pub fn hangs() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let (machine, code): (u16, Vec<u8>) = if cfg!(target_arch = "x86_64") {
        // mov eax, 34 (pause); syscall; jmp to the beginning
        (62, vec![0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7])
    } else {
        // x0 to x4 = 0; x8 = 73 (ppoll); svc 0; b to the beginning
        let words: [u32; 8] =
            [0xd280_0000, 0xd280_0001, 0xd280_0002, 0xd280_0003, 0xd280_0004, 0xd280_0928, 0xd400_0001, 0x17ff_fff9];
        (183, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    };
    let length = HEADERS + code.len() as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    file.resize(16, 0);
    for half in [2, machine] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for address in [BASE + HEADERS, 64, 0] {
        file.extend(address.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // A segment to load, which may be read and executed.
    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes());
    }
    for number in [0, BASE, BASE, length, length, 0x1000] {
        file.extend(number.to_le_bytes());
    }
    file.extend(code);
    file
}
