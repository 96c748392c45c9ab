//! Pages of memory.

/// Asks the system for small pages only, from now on.
///
/// The allocator asks for huge ones, which the system fills with zeros before they are used. What runs long wins by them; what answers one question touches a little of each, and waited for zeros half of the time (docs/lessons/slices.md).
pub(crate) fn small() {
    #[cfg(target_os = "linux")]
    {
        // Where this cannot be had, it merely takes longer.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
