//! Where in a function's loop nests a path begins.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A list of loop headers, the outermost first; [`Loops::OUTSIDE`] is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct LoopNest(u32);

/// All lists of headers that occur, as a trie: each is its parent and one more header. Functions share it, since a path is compared
/// with others of its activation only.
pub(super) struct Loops {
    /// The parent of each place, and how many headers it has.
    places: Vec<(LoopNest, u32)>,
    children: HashMap<(LoopNest, u32), LoopNest, FxBuildHasher>,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            places: vec![(Self::OUTSIDE, 0)],
            children: HashMap::default(),
        }
    }
}

impl Loops {
    /// In no loop.
    pub(super) const OUTSIDE: LoopNest = LoopNest(0);

    /// The place in the loops with these headers.
    pub(super) fn place(&mut self, headers: &[u32]) -> LoopNest {
        headers.iter().fold(Self::OUTSIDE, |parent, &header| {
            let places = &mut self.places;
            *self.children.entry((parent, header)).or_insert_with(|| {
                let depth = places[parent.0 as usize].1 + 1;
                places.push((parent, depth));
                LoopNest(u32::try_from(places.len() - 1).expect("fewer loops than 2^32"))
            })
        })
    }

    /// In how many loops it is.
    pub(super) fn depth(&self, place: LoopNest) -> u32 {
        self.places[place.0 as usize].1
    }

    /// The place around its innermost loop.
    pub(super) fn parent(&self, place: LoopNest) -> LoopNest {
        self.places[place.0 as usize].0
    }

    /// The innermost place that is around both.
    pub(super) fn common(&self, mut a: LoopNest, mut b: LoopNest) -> LoopNest {
        while a != b {
            if self.depth(a) >= self.depth(b) {
                a = self.parent(a);
            } else {
                b = self.parent(b);
            }
        }
        a
    }
}
