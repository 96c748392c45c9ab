//! Reads bytes as a history of misses, and text as a description of a simulation. Both may be
//! refused, but nothing may panic or take disproportionate memory, and accepted input must be
//! consistent.

use afterimage_simulate::{Epoch, Misses, Spec, Summary};

/// Reads all readable data of an epoch.
pub fn read_history(bytes: &[u8], two: bool) {
    let Ok(epoch) = Epoch::open(bytes, two) else {
        return;
    };
    for site in &epoch.sites {
        let mut misses = Misses::default();
        if site.misses(0, &mut misses).is_ok() {
            assert_eq!(misses.first.len() as u64, site.tally.missed);
            assert_eq!(misses.last.len() as u64, site.tally.last);
            assert!(misses.first.is_sorted() && misses.last.is_sorted());
            let last = misses.first.last().copied();
            assert!(last.is_none_or(|last| last <= site.tally.executions));
        }
    }
}

/// Reads a text, writes what it means, and reads that again: the meaning must be the same.
pub fn read_spec(text: &str) {
    if let Ok(spec) = text.parse::<Spec>() {
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }
}

/// Reads a summary, writes what it means, and reads that again: the meaning must be the same.
pub fn read_summary(bytes: &[u8]) {
    if let Ok(summary) = Summary::decode(bytes) {
        assert_eq!(Summary::decode(&summary.encode()), Ok(summary.clone()));
        let _ = summary.sum(|_| true);
    }
}
