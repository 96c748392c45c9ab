//! The loop nests in which paths begin.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A list of loop headers, outermost first. [`Loops::OUTSIDE`] is the empty list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct LoopNest(u32);

/// A trie of all lists of headers that occur. Each list is its parent plus one header. Functions
/// share the trie, because a path is compared only with other paths of its activation.
pub(super) struct Loops {
    /// The parent of each loop nest, and its number of headers.
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
    /// The empty loop nest, outside all loops.
    pub(super) const OUTSIDE: LoopNest = LoopNest(0);

    /// Returns the loop nest with these headers.
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

    /// Returns the number of loops in a loop nest.
    pub(super) fn depth(&self, place: LoopNest) -> u32 {
        self.places[place.0 as usize].1
    }

    /// Returns the loop nest around the innermost loop of `place`.
    pub(super) fn parent(&self, place: LoopNest) -> LoopNest {
        self.places[place.0 as usize].0
    }

    /// Returns the innermost loop nest that contains both `a` and `b`.
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
