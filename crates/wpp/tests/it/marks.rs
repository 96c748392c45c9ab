//! Compares marks that depend on the previous execution with the expanded run.

use std::sync::Arc;

use crate::oracle::{Run, chaos, runs};
use afterimage_ids::NodeId;
use afterimage_wpp::{InMemory, Marking, Node, WholePath};
use proptest::prelude::*;

/// Marks that follow an unpredictable rule.
struct Hashed {
    inside: Vec<Vec<u64>>,
    /// Whether each node may have marks. This depends on its function.
    may_mark: Vec<bool>,
    salt: u64,
}

fn mix(values: [u64; 3]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let mixed = values.iter().fold(start, |hash, &value| {
        (hash ^ value)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    mixed >> 40
}

impl Hashed {
    fn new(run: &Run, salt: u64) -> Self {
        let may_mark =
            |data: &Node| !mix([salt, u64::from(data.function.as_u32()), 7]).is_multiple_of(3);
        let inside = run.nodes.iter().map(|(node, data)| {
            let most = if may_mark(data) { 4 } else { 0 };
            let blocks = 0..data.length().min(most);
            let marks = blocks.flat_map(|block| {
                let times = mix([salt, u64::from(node.as_u32()), block]) % 4;
                std::iter::repeat_n(block, times.saturating_sub(1) as usize)
            });
            marks.collect()
        });
        Self {
            inside: inside.collect(),
            may_mark: run.nodes.values().map(may_mark).collect(),
            salt,
        }
    }
}

impl Marking for Hashed {
    fn inside(&self, node: NodeId) -> &[u64] {
        &self.inside[node.as_u32() as usize]
    }

    fn key(&self) -> Box<[u32]> {
        [self.salt as u32, (self.salt >> 32) as u32].into()
    }

    fn may_mark(&self, node: NodeId) -> bool {
        self.may_mark[node.as_u32() as usize]
    }

    fn joining(&self, before: Option<NodeId>, node: NodeId) -> u64 {
        if !self.may_mark(node) {
            return 0;
        }
        let before = before.map_or(99, |node| u64::from(node.as_u32()));
        (mix([self.salt, before, u64::from(node.as_u32())]) % 4).saturating_sub(1)
    }
}

fn check(run: &Run, limit: usize, salt: u64) {
    let segments: InMemory = run.segments(limit).into_iter().collect();
    let path = WholePath::new(segments, Arc::new(run.nodes.clone())).unwrap();
    let naive = run.naive();
    let marking = Hashed::new(run, salt);
    let mut last = vec![None; naive.activations.len()];
    // In runs without structure, nodes may be executed outside any activation.
    let mut last_of_host = None;
    let mut expected = Vec::new();
    for visit in &naive.visits {
        let last = match visit.stack.last() {
            Some(&activation) => &mut last[activation],
            None => &mut last_of_host,
        };
        let joining = marking.joining(*last, visit.node);
        expected.extend((0..joining).map(|_| visit.start));
        let inside = marking.inside(visit.node).iter();
        expected.extend(inside.map(|block| visit.start + block));
        *last = Some(visit.node);
    }
    let marks = path.marks(marking).unwrap();
    assert_eq!(marks.count(), expected.len() as u64);
    for (at, &time) in expected.iter().enumerate() {
        assert_eq!(marks.select(at as u64 + 1), Ok(Some(time)), "{at}");
    }
    assert_eq!(marks.select(0), Ok(None));
    assert_eq!(marks.select(expected.len() as u64 + 1), Ok(None));
}

proptest! {
    #[test]
    fn marks_are_found_as_by_definition(run in runs(200), limit in 2usize..200, salt: u64) {
        check(&run, limit, salt);
    }

    #[test]
    fn marks_in_any_order_of_calls(run in chaos(200), limit in 2usize..100, salt: u64) {
        check(&run, limit, salt);
    }
}
