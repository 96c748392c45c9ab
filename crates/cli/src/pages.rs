//! Configures the memory pages of the process.

/// Makes the system use only small pages from now on.
///
/// The allocator requests huge pages, which the system fills with zeros before use. Long-running
/// commands benefit from them. An answer that needs little uses only a small part of each page, and
/// would spend half of its time waiting for the zeros (docs/lessons/slices.md). Child processes
/// inherit the setting.
pub(crate) fn small() {
    #[cfg(target_os = "linux")]
    {
        // If the system refuses, the command is only slower.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
