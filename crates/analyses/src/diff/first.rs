//! Finds the first difference between two runs.

use std::collections::HashSet;

use afterimage_ids::FuncId;
use afterimage_machine::Range;
use afterimage_wpp::Segments;

use super::fold::Folding;
use super::{DiffError, Replaced, Side};
use afterimage_replay::steps::{Level, Step, Steps, Wanted, What, Within};
use afterimage_replay::whole_path::Window;

/// The first difference between two runs. Everything before it is the same in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step of the first run. `None` if that run has ended.
    pub a: Option<Step>,
    /// The step of the second run. `None` if that run has ended.
    pub b: Option<Step>,
    /// The differing bytes, if the host writes or reads the same place in both runs.
    pub bytes: Option<HostBytes>,
}

/// Bytes that the host wrote or read in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBytes {
    /// The offset of the first byte that differs.
    pub offset: u64,
    /// The first run's bytes from this offset on.
    pub a: Vec<u8>,
    /// The second run's bytes from this offset on.
    pub b: Vec<u8>,
}

/// The number of bytes of [`HostBytes`] to keep.
const KEPT: usize = 32;

/// Finds where two runs first differ in control, a value, an address, or the host's actions.
/// Returns `None` if they are the same to the end. Both must belong to one module, or to two
/// modules that are [`alike`](super::alike). `replaced` contains the operators that differ between
/// the modules. For operators that change tables or drop a segment, the table or segment itself is
/// not compared.
///
/// Takes twice as long as following both runs up to the difference.
///
/// # Errors
/// Returns an error if either run cannot be followed.
pub fn first_difference<S: Segments>(
    a: Side<'_, S>,
    b: Side<'_, S>,
    replaced: &[Replaced],
) -> Result<Option<Difference>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let stepped: HashSet<FuncId> = replaced.iter().map(|at| at.function).collect();
    let Some(window) = differing(a, b, &stepped)? else {
        return Ok(None);
    };
    let found = named(a, b, window)?;
    found.map(Some).ok_or(DiffError::Untold(window.first))
}

/// Returns the stretch that contains the first difference.
fn differing<'a, S: Segments>(
    a: Side<'a, S>,
    b: Side<'a, S>,
    stepped: &'a HashSet<FuncId>,
) -> Result<Option<Window>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut sides = (
        Folding::new(a, (a.log)()?, stepped)?,
        Folding::new(b, (b.log)()?, stepped)?,
    );
    let mut same = 0;
    loop {
        let (ta, tb) = (sides.0.time(), sides.1.time());
        if ta == tb {
            if sides.0.folded() != sides.1.folded() {
                break;
            }
            same = ta;
        }
        let (first, second) = (ta <= tb, tb <= ta);
        let went = (first && sides.0.advance()?, second && sides.1.advance()?);
        match went {
            (false, false) if first && second => return Ok(None),
            // One run has ended, and the other run continues.
            (false, _) if first => break,
            (_, false) if second => break,
            _ => {}
        }
    }
    Ok(Some(Window {
        first: same + 1,
        last: sides.0.time().max(sides.1.time()).max(same + 1),
    }))
}

/// Returns the first step that differs in a stretch.
fn named<S: Segments>(
    a: Side<'_, S>,
    b: Side<'_, S>,
    window: Window,
) -> Result<Option<Difference>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let wanted = Wanted {
        level: Level::Statement,
        window,
        within: Within::default(),
        function: None,
        range: None,
    };
    let mut steps = (
        Steps::new(a.run, (a.log)()?, wanted)?,
        Steps::new(b.run, (b.log)()?, wanted)?,
    );
    loop {
        let (first, second) = (steps.0.next()?, steps.1.next()?);
        if let (Some(x), Some(y)) = (&first, &second)
            && let (What::HostWrite(f, at), What::HostWrite(g, to))
            | (What::HostRead(f, at), What::HostRead(g, to)) = (&x.what, &y.what)
            && (x.time, f, at.memory, at.address) == (y.time, g, to.memory, to.address)
            && (at.length == to.length || matches!(x.what, What::HostWrite(..)))
        {
            let (at, to) = (*at, *to);
            let x = written(&mut steps.0, at)?;
            let y = written(&mut steps.1, to)?;
            if x != y {
                return Ok(Some(Difference {
                    bytes: Some(HostBytes::of(&x, &y)),
                    a: first,
                    b: second,
                }));
            }
        }
        if first != second {
            return Ok(Some(Difference {
                a: first,
                b: second,
                bytes: None,
            }));
        }
        if first.is_none() {
            return Ok(None);
        }
    }
}

impl HostBytes {
    /// Returns the bytes from the first difference on.
    fn of(x: &[u8], y: &[u8]) -> Self {
        let same = x.iter().zip(y).take_while(|(x, y)| x == y).count();
        let part = |bytes: &[u8]| bytes[same..].iter().copied().take(KEPT).collect();
        Self {
            offset: same as u64,
            a: part(x),
            b: part(y),
        }
    }
}

/// Returns the bytes of a range of memory. The host reads and writes bytes at the end of a node,
/// where the machine stops.
fn written<S: Segments>(
    steps: &mut Steps<'_, S>,
    range: Range,
) -> Result<Vec<u8>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let follower = &mut steps.follower;
    follower.need(range.memory, range.address, range.length)?;
    let memory = &follower.machine.state.memories[range.memory as usize];
    let place = memory.range(range.address, range.length).ok();
    let bytes = place.and_then(|place| memory.bytes.get(place));
    Ok(bytes.unwrap_or_default().to_vec())
}
