//! Writes, numbered: what stands in the shadow.

use afterimage_ids::{EntityRef, NodeId};

use crate::def::Origin;

/// Bits of the number of an execution.
pub(super) const EXECUTION_BITS: u32 = 36;
/// Bits of the offset in a value.
const OFFSET_BITS: u32 = 4;
/// Where the site's number begins.
const SITE_SHIFT: u32 = EXECUTION_BITS + OFFSET_BITS;
/// Set if each byte is another one of a value.
const STEPPING: u64 = 1 << 63;

/// The largest number of an execution that fits.
pub(super) const MOST_EXECUTIONS: u64 = (1 << EXECUTION_BITS) - 1;
/// How many sites there may be.
pub(super) const MOST_SITES: usize = 1 << (63 - SITE_SHIFT);
/// The site of what is there before the run.
pub(super) const INITIAL: u32 = 0;
/// The site of what the host writes; the execution is the number of its call.
pub(super) const HOST: u32 = 1;

/// The execution of a write that a byte comes from, and which byte of the value that it wrote.
///
/// From the top: whether bytes are told apart, the site, the byte, the execution of the site's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Def(pub u64);

impl Def {
    /// The definition of a place, of no execution.
    pub(super) fn of_place(place: u32) -> Self {
        Self(u64::from(place) << EXECUTION_BITS)
    }

    /// A write of a value.
    #[inline(always)]
    pub(super) fn value(site: u32, execution: u64) -> Self {
        Self(STEPPING | u64::from(site) << SITE_SHIFT | execution)
    }

    /// A write of something else.
    #[inline(always)]
    pub(super) fn other(site: u32, execution: u64) -> Self {
        Self(u64::from(site) << SITE_SHIFT | execution)
    }

    /// What `i` bytes further on was written along with this. An offset beyond the longest value gives what no byte has.
    #[inline]
    pub(super) fn at(self, i: u64) -> Self {
        Self(self.0.wrapping_add(self.step().wrapping_mul(i)))
    }

    /// What one byte makes.
    #[inline]
    pub(super) fn step(self) -> u64 {
        (self.0 >> 63) << EXECUTION_BITS
    }

    /// Whether it is a value that an instruction wrote.
    #[inline(always)]
    pub(super) fn is_value(self) -> bool {
        self.0 & STEPPING != 0
    }

    /// Whether no instruction wrote it.
    #[inline(always)]
    pub(super) fn is_outside(self) -> bool {
        self.site() <= HOST
    }

    /// Whether this and so many bytes after it can be of one write.
    #[inline]
    pub(super) fn fits(self, length: u64) -> bool {
        self.0 & STEPPING == 0 || u64::from(self.offset()) + length <= 1 << OFFSET_BITS
    }

    #[inline(always)]
    pub(super) fn site(self) -> u32 {
        ((self.0 & !STEPPING) >> SITE_SHIFT) as u32
    }

    #[inline(always)]
    pub(super) fn offset(self) -> u8 {
        (self.0 >> EXECUTION_BITS) as u8 & ((1 << OFFSET_BITS) - 1)
    }

    #[inline(always)]
    pub(super) fn execution(self) -> u64 {
        self.0 & MOST_EXECUTIONS
    }

    /// Without the execution.
    #[inline(always)]
    pub(super) fn place(self) -> u32 {
        (self.0 >> EXECUTION_BITS) as u32
    }
}

/// Which write of which node a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub node: NodeId,
    /// Which of its writes.
    pub write: u32,
}

/// What the numbers of inputs and sites stand for.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The writes, by site.
    pub sites: Vec<Site>,
    /// What is there at first.
    pub first: Origin,
    /// The number of each node's first input, ascending.
    pub inputs: Vec<u32>,
}

impl Numbers {
    /// The node of an input, and which of its inputs it is.
    pub(crate) fn of_input(&self, input: u32) -> (NodeId, usize) {
        let node = self.inputs.partition_point(|&first| first <= input) - 1;
        (NodeId::new(node), (input - self.inputs[node]) as usize)
    }

    /// What a place is.
    pub(crate) fn origin(&self, place: u32) -> Origin {
        let def = Def::of_place(place);
        match def.site() {
            INITIAL => self.first,
            HOST => Origin::Host,
            site => {
                let Site { node, write } = self.sites[site as usize];
                let offset = def.offset();
                Origin::Write {
                    node,
                    write,
                    offset,
                }
            }
        }
    }
}
