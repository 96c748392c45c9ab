//! Identifies the machine and the date.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The circumstances of a measurement. Results mean little without them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub system: String,
    pub date: String,
    pub engine: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text
                .lines()
                .find(|l| l.starts_with(name))
                .unwrap_or_default();
            line.split_once(':')
                .map_or("unknown", |l| l.1.trim())
                .to_owned()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib: u64 = memory
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: kib >> 20,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            date: date(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |d| d.as_secs()),
            ),
            engine: afterimage_record::engine_description(),
        }
    }
}

/// Converts a Unix time to a date of the Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", 2013).
fn date(unix: u64) -> String {
    let days = (unix / 86400) as i64 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::date(0), "1970-01-01");
        assert_eq!(super::date(951_782_400), "2000-02-29");
        assert_eq!(super::date(1_795_132_800), "2026-11-20");
    }
}
