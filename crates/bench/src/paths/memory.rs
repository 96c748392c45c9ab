//! The most memory that the process took.

/// Forgets how much memory the process took at most, so that [`peak_mib`] is of what comes after.
pub(crate) fn forget_peak() {
    // Where this is not possible, the peak is that of the whole benchmark, which is no less.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory since [`forget_peak`], in MiB; not a number where the system does not tell.
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}
