//! Iterates over the calls in a window of a run.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_wpp::{
    Activation, CallEvent, Calls, Cursor, Node, Occurrences, PathError, Segments, WholePath,
};

use super::Window;
use super::contexts::site::{STEPS, last_block};

/// An activation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEntry {
    /// The function of the activation.
    pub function: FuncId,
    /// The number of enclosing activations.
    pub depth: usize,
    /// The time of the activation's first block.
    pub entered: u64,
    /// The time of the last block that the activation or a callee executed, or `None` if the
    /// activation was still open when the run ended.
    pub left: Option<u64>,
    /// The function and block that made the call, or `None` for the host. After a tail call,
    /// control does not return there.
    pub site: Option<(FuncId, BlockId)>,
    /// Whether a tail call began the activation. The caller's activation has then ended.
    pub is_tail: bool,
    /// The block at which the activation around this activation waits. This is the site, unless a
    /// tail call began the activation. After a tail call, the block is `None` if it was not
    /// searched for or not found.
    pub within: Option<(FuncId, BlockId)>,
}

impl CallEntry {
    /// Returns the number of blocks executed until the activation ended, or until the run ended at
    /// block `length`.
    pub fn blocks(&self, length: u64) -> u64 {
        (self.left.unwrap_or(length) + 1).saturating_sub(self.entered)
    }
}

/// The activations that begin in a window, as a tree, in order of time or backward, down to a given
/// depth.
///
/// Skipping a deeper activation takes O(1) forward. Backward, it takes O(log n) for each rule on
/// the way down.
pub struct CallTree<'a, S: Segments> {
    path: &'a WholePath<S>,
    window: Window,
    /// The nesting depth from which activations are left out.
    limit: usize,
    order: Order<'a, S>,
    cursor: Cursor<'a, S>,
    around: Vec<Activation>,
    /// The number of activations that may still be added.
    room: u64,
    /// The least depth of the activations that were returned. It is initially larger than the depth
    /// of any activation that may come first.
    least: usize,
    /// The number of activations that a search for the beginning of tail calls may still examine.
    steps: usize,
}

/// The order in which activations are listed.
enum Order<'a, S: Segments> {
    Forwards(Calls<'a, S>),
    Backwards(Beginnings<'a, S>),
}

impl<'a, S: Segments> CallTree<'a, S> {
    /// Creates the tree of the activations that begin in a window of the run. Leaves out
    /// activations that are nested more than `depth` calls below the innermost activation open at
    /// the window's beginning.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn new(
        path: &'a WholePath<S>,
        window: Window,
        reverse: bool,
        depth: usize,
    ) -> Result<Self, super::TraceError<S::Error>> {
        let mut cursor = path.cursor();
        let around = around(&mut cursor, window.first)?;
        let limit = around.len().saturating_add(depth);
        Ok(Self {
            path,
            window,
            limit,
            order: if reverse {
                Order::Backwards(Beginnings::new(path, window.last)?)
            } else {
                Order::Forwards(path.calls(window.first, limit)?)
            },
            cursor,
            least: around.len() + 1,
            around,
            room: u64::MAX,
            steps: STEPS,
        })
    }

    /// Keeps only the last `entries` activations in time. If the walk goes backward, these are the
    /// activations that it returns first.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn keep_last(&mut self, entries: u64) -> Result<(), super::TraceError<S::Error>> {
        if let Order::Backwards(_) = self.order {
            self.room = entries;
            return Ok(());
        }
        let mut beginnings = Beginnings::new(self.path, self.window.last)?;
        let mut first = None;
        for _ in 0..entries {
            match beginnings.previous(&mut self.cursor, self.window.first, self.limit)? {
                Some(call) => first = Some(call.entered),
                None => return Ok(()),
            }
        }
        if let Some(first) = first {
            self.window.first = first;
            self.around = around(&mut self.cursor, first)?;
            self.least = self.around.len() + 1;
            self.order = Order::Forwards(self.path.calls(first, self.limit)?);
        }
        Ok(())
    }

    /// Returns the activations that are open at the beginning of the window, or of the first kept
    /// activation. The outermost comes first.
    pub fn around(&self) -> &[Activation] {
        &self.around
    }

    /// Returns the innermost `count` of the activations [`around`](Self::around), the outermost
    /// first.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn innermost_around(
        &mut self,
        count: usize,
    ) -> Result<Vec<CallEntry>, PathError<S::Error>> {
        let hidden = self.around.len().saturating_sub(count);
        open_calls(self.path, &mut self.cursor, &self.around, hidden)
    }

    /// Returns the next activation.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn next_call(&mut self) -> Result<Option<CallEntry>, PathError<S::Error>> {
        let Some(room) = self.room.checked_sub(1) else {
            return Ok(None);
        };
        self.room = room;
        let begun = match &mut self.order {
            Order::Forwards(calls) => next(calls, self.window.last)?,
            Order::Backwards(beginnings) => {
                beginnings.previous(&mut self.cursor, self.window.first, self.limit)?
            }
        };
        let Some(Begun {
            function,
            depth,
            entered,
        }) = begun
        else {
            return Ok(None);
        };
        let (path, cursor) = (self.path, &mut self.cursor);
        let mut call = entry(path, cursor, function, Some(depth), entered)?;
        // If a tail call comes first inside an activation, the call that it replaces is before the
        // window.
        if call.is_tail
            && depth < self.least
            && matches!(self.order, Order::Forwards(_))
            && let Some(outer) = depth.checked_sub(1)
        {
            let around = (outer, self.around[outer].entered);
            call.within = last_block(path, cursor, around, entered, &mut self.steps)?;
        }
        self.least = self.least.min(depth);
        Ok(Some(call))
    }
}

/// Returns the activations that began before the block at `time` and are open when it is executed.
fn around<S: Segments>(
    cursor: &mut Cursor<'_, S>,
    time: u64,
) -> Result<Vec<Activation>, PathError<S::Error>> {
    cursor.seek(time)?;
    let mut around = cursor.stack()?;
    around.retain(|activation| activation.entered < time);
    Ok(around)
}

/// The beginning of an activation.
struct Begun {
    function: FuncId,
    depth: usize,
    entered: u64,
}

/// Returns the next activation that begins at block `last` or before.
fn next<S: Segments>(
    calls: &mut Calls<'_, S>,
    last: u64,
) -> Result<Option<Begun>, PathError<S::Error>> {
    while let Some(event) = calls.next()? {
        if let CallEvent::Enter {
            function,
            depth,
            time,
        } = event
        {
            let begun = Begun {
                function,
                depth,
                entered: time,
            };
            return Ok(Some(begun).filter(|begun| begun.entered <= last));
        }
    }
    Ok(None)
}

/// The beginnings of all activations, backward.
struct Beginnings<'a, S> {
    /// Executions of nodes at which an activation may begin. Such a node begins with a function's
    /// block 0, which has no predecessor, or is a gap.
    candidates: Occurrences<'a, S>,
    nodes: &'a PrimaryMap<NodeId, Node>,
    /// The last block that has not been examined yet.
    last: u64,
}

impl<'a, S: Segments> Beginnings<'a, S> {
    fn new(path: &'a WholePath<S>, last: u64) -> Result<Self, super::TraceError<S::Error>> {
        let nodes = path.nodes().iter();
        let nodes = nodes.filter(|(_, node)| {
            node.left_out > 0 || node.blocks.first() == Some(&BlockId::from_u32(0))
        });
        let candidates = path.executions(nodes.map(|(id, _)| (id, 0)))?;
        Ok(Self {
            candidates,
            nodes: path.nodes(),
            last,
        })
    }

    /// Returns the preceding activation, if it begins at block `first` or later. Skips activations
    /// inside `limit` or more other activations, including their callees.
    fn previous(
        &mut self,
        cursor: &mut Cursor<'_, S>,
        first: u64,
        limit: usize,
    ) -> Result<Option<Begun>, PathError<S::Error>> {
        while let Some(found) = self.candidates.previous_before(self.last + 1)? {
            if found.time < first {
                break;
            }
            self.last = found.time - 1;
            let Some(visit) = cursor.seek(found.time)? else {
                break;
            };
            let depth = cursor.depth().saturating_sub(1);
            if depth >= limit {
                let stack = cursor.stack()?;
                // The outermost activation that is too deep is examined next, and then also
                // skipped.
                self.last = stack.get(limit).map_or(self.last, |deep| deep.entered - 1);
                continue;
            }
            let is_beginning = self.nodes[visit.node].left_out == 0
                || cursor.stack()?.last().map(|open| open.entered) == Some(found.time);
            if let Some(function) = cursor.function()
                && is_beginning
            {
                return Ok(Some(Begun {
                    function,
                    depth,
                    entered: found.time,
                }));
            }
        }
        self.last = first.saturating_sub(1);
        Ok(None)
    }
}

/// Iterates over the activations of one function that begin in a window, in either direction. Each
/// step takes O(log n) for each rule on the way down to the activation.
pub struct CallsOf<'a, S: Segments> {
    path: &'a WholePath<S>,
    function: FuncId,
    occurrences: Occurrences<'a, S>,
    cursor: Cursor<'a, S>,
    /// The number of the first remaining activation. `last` is the number of the last.
    first: u64,
    last: u64,
    reverse: bool,
}

impl<'a, S: Segments> CallsOf<'a, S> {
    /// Creates an iterator over the activations of a function that begin in a window of the run.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read, or has too many activations to count.
    pub fn new(
        path: &'a WholePath<S>,
        window: Window,
        reverse: bool,
        function: FuncId,
    ) -> Result<Self, super::TraceError<S::Error>> {
        let occurrences = path.activations(function)?;
        Ok(Self {
            path,
            first: occurrences.rank(window.first - 1)? + 1,
            last: occurrences.rank(window.last)?,
            function,
            occurrences,
            cursor: path.cursor(),
            reverse,
        })
    }

    /// Returns the number of remaining activations.
    pub fn count(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Keeps only the last `entries` activations.
    pub fn keep_last(&mut self, entries: u64) {
        self.first = self.first.max((self.last + 1).saturating_sub(entries));
    }

    /// Returns the next activation, with its number among its function's activations in the whole
    /// path, from 1.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn next_call(&mut self) -> Result<Option<(u64, CallEntry)>, PathError<S::Error>> {
        if self.count() == 0 {
            return Ok(None);
        }
        let number = if self.reverse { self.last } else { self.first };
        let Some(found) = self.occurrences.select(number)? else {
            return Ok(None);
        };
        let call = entry(self.path, &mut self.cursor, self.function, None, found.time)?;
        if self.reverse {
            self.last -= 1;
        } else {
            self.first += 1;
        }
        Ok(Some((number, call)))
    }
}

/// Returns the k-th activation of a function, from 1, preceded by the activations that enclose it,
/// the outermost first. The list is empty if there are fewer than k. O(log n) for each activation
/// and each rule on the way down, except for activations that span several segments.
///
/// # Errors
/// Returns an error if the path cannot be read, or has too many activations to count.
pub fn kth_call<S: Segments>(
    path: &WholePath<S>,
    function: FuncId,
    number: u64,
) -> Result<Vec<CallEntry>, super::TraceError<S::Error>> {
    let Some(found) = path.activations(function)?.select(number)? else {
        return Ok(Vec::new());
    };
    let mut cursor = path.cursor();
    let call = entry(path, &mut cursor, function, None, found.time)?;
    cursor.seek(found.time)?;
    let mut stack = cursor.stack()?;
    stack.truncate(call.depth);
    stack.push(Activation {
        function,
        entered: found.time,
    });
    Ok(open_calls(path, &mut cursor, &stack, 0)?)
}

/// Returns the entries for the activations of a stack, except the outermost `hidden`.
fn open_calls<S: Segments>(
    path: &WholePath<S>,
    cursor: &mut Cursor<'_, S>,
    stack: &[Activation],
    hidden: usize,
) -> Result<Vec<CallEntry>, PathError<S::Error>> {
    let mut calls = Vec::with_capacity(stack.len() - hidden);
    let mut steps = STEPS;
    for (depth, open) in stack.iter().enumerate().skip(hidden) {
        let mut call = entry(path, cursor, open.function, Some(depth), open.entered)?;
        if call.is_tail
            && let Some(outer) = depth.checked_sub(1)
        {
            let around = (outer, stack[outer].entered);
            call.within = last_block(path, cursor, around, open.entered, &mut steps)?;
        }
        calls.push(call);
    }
    Ok(calls)
}

/// Returns the entry for an activation that begins at `time`. Moves the cursor.
fn entry<S: Segments>(
    path: &WholePath<S>,
    cursor: &mut Cursor<'_, S>,
    function: FuncId,
    depth: Option<usize>,
    time: u64,
) -> Result<CallEntry, PathError<S::Error>> {
    cursor.seek(time)?;
    let inside = cursor.depth().saturating_sub(1);
    let same = cursor.function() == Some(function) && depth.is_none_or(|depth| depth == inside);
    let mut call = CallEntry {
        function,
        depth: depth.unwrap_or(inside),
        entered: time,
        // If the block belongs to another activation, this activation executes no block.
        left: if same {
            cursor.activation_end()?
        } else {
            Some(time - 1)
        },
        site: None,
        is_tail: false,
        within: None,
    };
    if call.depth > 0
        && let Some(before) = cursor.previous()?
    {
        let node = &path.nodes()[before.node];
        call.site = node.blocks.last().map(|&block| (node.function, block));
        call.is_tail = call.site.is_some() && cursor.depth() > call.depth;
        call.within = call.site.filter(|_| !call.is_tail);
    }
    Ok(call)
}
