//! Describes the origin of a value in one sentence.

use super::{WhyEntry, expression};
use crate::{counted, grouped};

/// The kind of the entry that reports a partial search: only a part of the run was searched for an
/// operand that leads to input. The entry follows the chain's own end.
pub const SEARCHED: &str = "searched";

/// Describes the origin, in words that follow the subject of a sentence.
pub fn why_origin(begun: &[WhyEntry], links: u64) -> String {
    let back = |links: u64| match links {
        0 => String::new(),
        1 => ", one step back".to_owned(),
        links => format!(", {} steps back", grouped(links)),
    };
    let is_way = |entry: &&WhyEntry| !matches!(entry, WhyEntry::End(end) if end.kind == SEARCHED);
    match begun.iter().rfind(is_way) {
        Some(WhyEntry::End(end)) if end.kind == "stopped" => {
            format!(
                "goes further back than the {} followed",
                counted(links, "step")
            )
        }
        Some(WhyEntry::End(end)) => {
            let back = back(links);
            let place = end.place.as_ref();
            let at = place.map_or(String::new(), |place| {
                format!(" at {}", place.own_line_or_at())
            });
            format!("comes from {}{at}{back}", end.what)
        }
        Some(WhyEntry::Made(made)) if made.followed().is_none() => {
            let of = if made.operands.is_empty() {
                made.place.operator.clone()
            } else {
                format!("constants, {}", expression(made))
            };
            let at = made.place.own_line_or_at();
            // The links include this step, which does not count as a step back.
            let back = back(links.saturating_sub(1));
            format!("comes from {of} at {at}{back}")
        }
        _ => "comes from far back: the last lines show its origin".to_owned(),
    }
}
