//! Reads bytes as a history of misses, and a text as what was simulated. They may be refused; nothing may panic, nor take memory out of
//! proportion, and what is read must be consistent.

use afterimage_simulate::{Epoch, Misses, Spec, Summary};

/// Reads all that an epoch has, as far as it can be read.
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

/// Reads a text; what it means is written so that it is read again.
pub fn read_spec(text: &str) {
    if let Ok(spec) = text.parse::<Spec>() {
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }
}

/// Reads a summary; what it means is written so that it is read again.
pub fn read_summary(bytes: &[u8]) {
    if let Ok(summary) = Summary::decode(bytes) {
        assert_eq!(Summary::decode(&summary.encode()), Ok(summary.clone()));
        let _ = summary.sum(|_| true);
    }
}
