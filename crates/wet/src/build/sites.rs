//! Numbers the writes. The shadow stores these numbers for bytes.

use afterimage_ids::{EntityRef, NodeId};

use crate::def::Origin;

/// The number of bits of an execution's number.
pub(super) const EXECUTION_BITS: u32 = 36;
/// The number of bits of the offset in a value.
const OFFSET_BITS: u32 = 4;
/// The bit position of the site's number.
const SITE_SHIFT: u32 = EXECUTION_BITS + OFFSET_BITS;
/// The flag of a stepping definition, whose successive bytes are successive bytes of a value.
const STEPPING: u64 = 1 << 63;

/// The largest execution number that fits.
pub(super) const MOST_EXECUTIONS: u64 = (1 << EXECUTION_BITS) - 1;
/// The maximum number of sites.
pub(super) const MOST_SITES: usize = 1 << (63 - SITE_SHIFT);
/// The site of the initial contents.
pub(super) const INITIAL: u32 = 0;
/// The site of the host's writes. The execution is the number of the host call.
pub(super) const HOST: u32 = 1;

/// The definition of a byte: the execution of a write, and the byte's position in the written
/// value.
///
/// The fields, from the highest bits down, are whether the definitions of successive bytes differ,
/// the site, the position, and the execution of the site's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Def(pub u64);

impl Def {
    /// Returns the definition of a place, without an execution.
    pub(super) fn of_place(place: u32) -> Self {
        Self(u64::from(place) << EXECUTION_BITS)
    }

    /// Returns the definition of the first byte of a written value.
    #[inline(always)]
    pub(super) fn value(site: u32, execution: u64) -> Self {
        Self(STEPPING | u64::from(site) << SITE_SHIFT | execution)
    }

    /// Returns the common definition of written bytes that are not a value.
    #[inline(always)]
    pub(super) fn other(site: u32, execution: u64) -> Self {
        Self(u64::from(site) << SITE_SHIFT | execution)
    }

    /// Returns the definition of the byte `i` bytes further on in the same write. An offset beyond
    /// the longest value gives a definition that no byte has.
    #[inline]
    pub(super) fn at(self, i: u64) -> Self {
        Self(self.0.wrapping_add(self.step().wrapping_mul(i)))
    }

    /// Returns the difference between the definitions of successive bytes.
    #[inline]
    pub(super) fn step(self) -> u64 {
        (self.0 >> 63) << EXECUTION_BITS
    }

    /// Whether an instruction wrote a value.
    #[inline(always)]
    pub(super) fn is_value(self) -> bool {
        self.0 & STEPPING != 0
    }

    /// Whether no instruction wrote the byte.
    #[inline(always)]
    pub(super) fn is_outside(self) -> bool {
        self.site() <= HOST
    }

    /// Whether `length` bytes, beginning with this byte, can belong to one write.
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

    /// Returns the place, which is the definition without the execution.
    #[inline(always)]
    pub(super) fn place(self) -> u32 {
        (self.0 >> EXECUTION_BITS) as u32
    }
}

/// The node and write of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub node: NodeId,
    /// The number of the write in the node.
    pub write: u32,
}

/// The meaning of the numbers of inputs and sites.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The writes, by site.
    pub sites: Vec<Site>,
    /// The origin of the initial contents.
    pub first: Origin,
    /// The number of each node's first input, ascending.
    pub inputs: Vec<u32>,
}

impl Numbers {
    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.sites) + size_of_val(&*self.inputs)
    }

    /// Returns the node of an input, and the input's position in the node.
    pub(crate) fn of_input(&self, input: u32) -> (NodeId, usize) {
        let node = self.inputs.partition_point(|&first| first <= input) - 1;
        (NodeId::new(node), (input - self.inputs[node]) as usize)
    }

    /// Converts a place to an origin.
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
