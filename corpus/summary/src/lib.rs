//! The guests' reports: a checksum turns long output into a short line that still shows errors.

/// The 64-bit FNV-1a hash of `bytes` (Fowler, Noll and Vo; draft-eastlake-fnv).
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
