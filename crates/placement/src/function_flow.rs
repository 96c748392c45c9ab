//! The flow equations of one function, with a run's measurements.

use std::collections::BTreeMap;

use afterimage_ids::{BlockId, CounterId, EdgeId, EntityRef, FunctionCounts};
use afterimage_program::Function;

use crate::flow::{self, FlowError};
use crate::{Counted, FunctionPlan, Site, SolveError};

/// The system of equations of one function.
///
/// The edges of the graph are numbered first, then EXIT→root, then virtual and added edges. A block
/// with a counter is split in two, with an edge between its halves that has the measured count.
pub(crate) struct FunctionFlow<'a> {
    function: &'a Function,
    ends: Vec<(u32, u32)>,
    /// The measured counts of the edges.
    measured: Vec<Option<i128>>,
    /// The counts of all edges, once solved.
    values: Vec<i128>,
    stays: Vec<i128>,
    /// The unknown edges from a block to EXIT, each as the block and the number of the edge.
    virtual_exits: Vec<(BlockId, usize)>,
}

impl<'a> FunctionFlow<'a> {
    /// Sets up the equations. `open` is the number of activations known to have stayed in each
    /// block. `may_end` lists the blocks in which an unknown number of activations may have stayed.
    pub(crate) fn new(
        function: &'a Function,
        plan: &FunctionPlan,
        counters: &[u64],
        open: &BTreeMap<BlockId, u64>,
        may_end: impl Iterator<Item = BlockId>,
    ) -> Result<Self, SolveError> {
        let graph = &function.cfg.graph;
        let (edges, mut vertices) = (graph.edge_count(), graph.vertex_count());
        let read = |counter: CounterId| {
            let value = counters.get(counter.index());
            value
                .map(|&v| i128::from(v))
                .ok_or(SolveError::MissingCounter(counter))
        };
        let misplaced = |place| SolveError::ForeignPlan {
            function: function.id,
            place,
        };
        let mut measured = vec![None; edges + 1];
        // The outgoing edges of a split block start at its second half.
        let mut second_half: BTreeMap<BlockId, u32> = BTreeMap::new();
        let mut between = Vec::new();
        for probe in &plan.probes {
            match probe.site {
                Site::Edge(e) => {
                    let slot = measured[..edges].get_mut(e.index());
                    *slot.ok_or(misplaced(Counted::Edge(e)))? = Some(read(probe.counter)?);
                }
                Site::Block(v) if v.index() < graph.vertex_count() => {
                    let half = *second_half.entry(v).or_insert_with(|| {
                        vertices += 1;
                        vertices as u32 - 1
                    });
                    between.push(((v.as_u32(), half), read(probe.counter)?));
                }
                Site::Block(v) => return Err(misplaced(Counted::Block(v))),
            }
        }
        let start = |v: BlockId| second_half.get(&v).copied().unwrap_or(v.as_u32());
        let exit = graph.exit();
        let mut ends: Vec<(u32, u32)> = graph
            .edges()
            .map(|e| (start(graph.from(e)), graph.to(e).as_u32()))
            .collect();
        ends.push((start(exit), graph.root().as_u32()));
        let mut virtual_exits = Vec::new();
        for v in may_end {
            virtual_exits.push((v, ends.len()));
            ends.push((start(v), exit.as_u32()));
            measured.push(None);
        }
        for (halves, value) in between {
            ends.push(halves);
            measured.push(Some(value));
        }
        let mut stays = vec![0; vertices];
        for (&v, &count) in open {
            if v.index() >= graph.vertex_count() || v == exit {
                return Err(SolveError::BadFrame {
                    function: function.id,
                    block: v,
                });
            }
            stays[start(v) as usize] += i128::from(count);
            stays[exit.index()] -= i128::from(count);
        }
        Ok(Self {
            function,
            ends,
            measured,
            values: Vec::new(),
            stays,
            virtual_exits,
        })
    }

    /// Solves the equations, using known values of some edges without counters. Values may come out
    /// negative.
    pub(crate) fn solve(
        &mut self,
        derived: impl Iterator<Item = (EdgeId, i128)>,
    ) -> Result<(), SolveError> {
        let (graph, function) = (&self.function.cfg.graph, self.function.id);
        let mut values = self.measured.clone();
        for (e, value) in derived {
            if values[e.index()].replace(value).is_some() {
                return Err(SolveError::ForeignPlan {
                    function,
                    place: Counted::Edge(e),
                });
            }
        }
        flow::solve(&self.ends, &mut values, &self.stays).map_err(|error| {
            match error {
                FlowError::Undetermined(e) => SolveError::Undetermined {
                    function,
                    place: self.place(e),
                },
                FlowError::Unbalanced(v) => {
                    // The second half of a block is the target of its measured edge.
                    let split = self.ends[graph.edge_count() + 1..].iter();
                    let mut split = split.filter(|e| e.1 as usize == v);
                    let block = split.next().map(|e| e.0 as usize);
                    let v = if v < graph.vertex_count() {
                        v
                    } else {
                        block.unwrap_or(v)
                    };
                    SolveError::Unbalanced {
                        function,
                        block: BlockId::new(v),
                    }
                }
            }
        })?;
        self.values = values.into_iter().flatten().collect();
        Ok(())
    }

    fn place(&self, e: usize) -> Counted {
        let edges = self.function.cfg.graph.edge_count();
        match e {
            e if e < edges => Counted::Edge(EdgeId::new(e)),
            e if e == edges => Counted::Entry,
            e => {
                let exit = self.virtual_exits.iter().find(|x| x.1 == e);
                exit.map_or(Counted::Entry, |x| Counted::Open(x.0))
            }
        }
    }

    /// Returns the number of entries of the function, after [`FunctionFlow::solve`].
    pub(crate) fn entries(&self) -> i128 {
        self.values[self.function.cfg.graph.edge_count()]
    }

    /// Returns the number of executions of a block, after [`FunctionFlow::solve`].
    pub(crate) fn block(&self, v: BlockId) -> i128 {
        let graph = &self.function.cfg.graph;
        let entry = if v == graph.root() { self.entries() } else { 0 };
        let into = graph.in_edges(v).iter().map(|e| self.values[e.index()]);
        entry + into.sum::<i128>()
    }

    /// Returns the counts, after [`FunctionFlow::solve`]. Fails if a count is negative or too
    /// large.
    pub(crate) fn counts(
        &self,
        open: &BTreeMap<BlockId, u64>,
    ) -> Result<FunctionCounts, SolveError> {
        let edges = self.function.cfg.graph.edge_count();
        let count = |e: usize| {
            let value = self.values[e];
            u64::try_from(value).map_err(|_| SolveError::Impossible {
                function: self.function.id,
                place: self.place(e),
                value,
            })
        };
        let mut open = open.clone();
        for &(v, e) in &self.virtual_exits {
            open.insert(v, count(e)?);
        }
        Ok(FunctionCounts {
            entries: count(edges)?,
            edges: (0..edges).map(count).collect::<Result<_, _>>()?,
            open: open.into_iter().filter(|&(_, n)| n > 0).collect(),
        })
    }
}
