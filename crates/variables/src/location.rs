//! Selects the location of a variable that applies at an offset (DWARF 5, section 2.6).

use std::ops::Range;

use afterimage_ids::OrigOffset;
use gimli::{AttributeValue, DwAt, Expression};

use crate::Unavailable;
use crate::debug::{Debug, EntryId, Slice, Value};

/// The location that an entry gives.
pub(crate) enum EntryLocation<'a> {
    /// An expression, and the unit in which to interpret it.
    Expression(u32, Expression<Slice<'a>>),
    /// The entry gives a constant value.
    Constant(Value<'a>),
    /// The entry gives no location.
    Nothing,
}

/// Returns the location that an attribute gives at an offset. Without an offset, ignores lists.
///
/// # Errors
/// [`Unavailable::NotHere`] if there is a list with entries for other offsets only.
pub(crate) fn select<'a>(
    debug: &Debug<'a>,
    id: EntryId,
    attribute: DwAt,
    at: Option<OrigOffset>,
) -> Result<EntryLocation<'a>, Unavailable> {
    let Some((unit, value)) = debug.attribute(id, attribute)? else {
        if attribute == gimli::DW_AT_location
            && let Some((_, value)) = debug.attribute(id, gimli::DW_AT_const_value)?
        {
            return Ok(EntryLocation::Constant(value));
        }
        return Ok(EntryLocation::Nothing);
    };
    if let AttributeValue::Exprloc(expression) = value {
        return Ok(EntryLocation::Expression(unit, expression));
    }
    let broken = debug.broken(id);
    let list = debug.unit(unit).attr_locations(value).map_err(&broken)?;
    let Some(mut list) = list else {
        return Err(Unavailable::Broken("neither an expression nor a list"));
    };
    let address = at.and_then(|at| debug.sections.address(at));
    let mut nearest: Option<(u32, Range<OrigOffset>)> = None;
    let mut fallback = None;
    while let Some(entry) = list.next().map_err(&broken)? {
        let (begin, end) = (entry.range.begin, entry.range.end);
        // A default location applies where no other does.
        if (begin, end) == (0, u64::MAX) {
            fallback = Some(entry.data);
            continue;
        }
        if address.is_some_and(|address| (begin..end).contains(&address)) {
            return Ok(EntryLocation::Expression(unit, entry.data));
        }
        if let (Some(at), Some(range), false) = (
            at,
            debug.sections.range(begin, end),
            entry.data.0.is_empty(),
        ) {
            let distance = distance(&range, at);
            if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
                nearest = Some((distance, range));
            }
        }
    }
    match (fallback, nearest) {
        (Some(expression), _) => Ok(EntryLocation::Expression(unit, expression)),
        (None, Some((_, nearest))) => Err(Unavailable::NotHere { nearest }),
        (None, None) => Ok(EntryLocation::Nothing),
    }
}

/// Returns the code for which an attribute gives a location, if it gives a list.
pub(crate) fn extents(
    debug: &Debug<'_>,
    id: EntryId,
    attribute: DwAt,
) -> Option<Vec<Range<OrigOffset>>> {
    let (unit, value) = debug.attribute(id, attribute).ok()??;
    if let AttributeValue::Exprloc(_) = value {
        return None;
    }
    let mut list = debug.unit(unit).attr_locations(value).ok()??;
    let mut found = Vec::new();
    while let Ok(Some(entry)) = list.next() {
        found.extend(debug.sections.range(entry.range.begin, entry.range.end));
    }
    Some(found)
}

/// Returns the distance between an offset and a range.
pub(crate) fn distance(range: &Range<OrigOffset>, at: OrigOffset) -> u32 {
    if at < range.start {
        range.start.0 - at.0
    } else {
        (at.0 + 1).saturating_sub(range.end.0)
    }
}
