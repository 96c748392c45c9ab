//! Settings for memory pages.

/// Asks the system for only small pages from now on.
///
/// The allocator asks for huge pages, which the system fills with zeros before use. Long-running
/// commands gain from them. A command that answers one question touches only a little of each page,
/// and would spend half of its time waiting for the zeros (docs/lessons/slices.md).
pub(crate) fn small() {
    #[cfg(target_os = "linux")]
    {
        // If the system refuses, the command only takes longer.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
