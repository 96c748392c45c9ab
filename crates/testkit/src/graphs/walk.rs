//! Walks at random through programs that consist of control-flow graphs, and counts the executions
//! in a slow, obvious way.

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId, FunctionCounts};
use afterimage_placement::{OpenFrame, Plan, RunFacts, Site};
use afterimage_program::{BlockEnd, Callee, Program};

/// The rules by which [`walk`] executes a program.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The total number of blocks to execute.
    pub steps: usize,
    /// Whether a run ends only in a call or at `unreachable`, never in the middle of a block.
    pub ends_at_calls: bool,
    /// Whether the host calls functions through references, and indirect calls may reach host
    /// functions.
    pub host_uses_references: bool,
}

/// A run, with its exact counts.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exact counts of the run.
    pub counts: Counts,
    /// The true number of executions of each block, except EXIT.
    pub blocks: Vec<Vec<u64>>,
    /// The facts about the run that the host observed.
    pub facts: RunFacts,
}

impl Run {
    /// Returns the values that a plan's counters would have.
    pub fn counters(&self, plan: &Plan) -> Vec<u64> {
        let mut counters = vec![u64::MAX; plan.counters as usize];
        for (f, function) in plan.functions.iter().enumerate() {
            for probe in &function.probes {
                counters[probe.counter.index()] = match probe.site {
                    Site::Block(v) => self.blocks[f][v.index()],
                    Site::Edge(e) => self.counts.functions[f].edges[e.index()],
                };
            }
        }
        counters
    }

    /// Returns the number of increments that a plan would have executed.
    pub fn increments(&self, plan: &Plan) -> u64 {
        self.counters(plan).iter().sum()
    }
}

/// Executes the program. The host starts functions one after another, and some of them end early.
/// Returns `None` if the run has not ended after ten times as many steps as requested, because the
/// rules did not let it end.
pub fn walk(program: &Program, rules: Rules, seed: u64) -> Option<Run> {
    let functions = program.functions.iter();
    let counts = functions.clone().map(|f| FunctionCounts {
        entries: 0,
        edges: vec![0; f.cfg.edges.len()],
        open: Vec::new(),
    });
    let mut walker = Walker {
        program,
        rules,
        random: Random(seed | 1),
        run: Run {
            counts: Counts {
                functions: counts.collect(),
            },
            blocks: functions.map(|f| vec![0; f.cfg.blocks.len()]).collect(),
            facts: RunFacts {
                import_calls: Some(vec![0; program.imports.len()]),
                ..RunFacts::default()
            },
        },
        stack: Vec::new(),
    };
    let mut steps = 0;
    while steps < rules.steps {
        walker.start_from_host();
        while let Some(&top) = walker.stack.last() {
            steps += 1;
            if steps > 10 * rules.steps {
                return None;
            }
            let is_over = steps >= rules.steps && (!rules.ends_at_calls || walker.is_call(top));
            if is_over {
                walker.end(false);
            } else {
                walker.step(top);
            }
        }
    }
    Some(walker.finish())
}

/// An activation, as the index of its function among the defined functions, and its current block.
type Frame = (usize, BlockId);

struct Walker<'a> {
    program: &'a Program,
    rules: Rules,
    random: Random,
    run: Run,
    stack: Vec<Frame>,
}

impl Walker<'_> {
    fn start_from_host(&mut self) {
        let imports = self.program.imports.len();
        let f = self.random.below(self.program.functions.len());
        let id = FuncId::new(imports + f);
        let by_reference =
            self.rules.host_uses_references && self.program.address_taken.contains(id);
        if !by_reference || self.random.one_in(2) {
            self.run.facts.host_entries.push((id, 1));
        }
        self.enter(f);
    }

    fn enter(&mut self, f: usize) {
        self.run.counts.functions[f].entries += 1;
        self.stack
            .push((f, self.program.functions[f].cfg.graph.root()));
        self.count_block();
    }

    fn count_block(&mut self) {
        if let Some(&(f, v)) = self.stack.last() {
            self.run.blocks[f][v.index()] += 1;
        }
    }

    fn is_call(&self, (f, v): Frame) -> bool {
        matches!(
            self.program.functions[f].cfg.blocks[v].end,
            BlockEnd::Call(_)
        )
    }

    /// Executes the end of the top frame's block.
    fn step(&mut self, (f, v): Frame) {
        let ends_here = self.random.one_in(300);
        match self.program.functions[f].cfg.blocks[v].end {
            BlockEnd::Unreachable => self.end(false),
            BlockEnd::Call(_) if ends_here => self.end(false),
            _ if ends_here && !self.rules.ends_at_calls => self.end(false),
            BlockEnd::Call(callee) => match self.resolve(callee) {
                Some(callee) => self.call(callee),
                None if self.rules.host_uses_references => self.resume(),
                None => self.end(false),
            },
            BlockEnd::TailCall(callee) => match self.resolve(callee) {
                Some(callee) => {
                    self.leave();
                    // The callee returns to this activation's caller, if there is one. `call` may
                    // also end the run, for which an activation must be open.
                    match self.defined(callee) {
                        Some(g) => self.enter(g),
                        None => {
                            self.count_import(callee);
                            self.resume();
                        }
                    }
                }
                None if self.rules.ends_at_calls || self.rules.host_uses_references => {
                    self.leave();
                    self.resume();
                }
                None => self.end(false),
            },
            _ => {
                self.leave();
                if self
                    .stack
                    .last()
                    .is_some_and(|&(f, v)| self.program.functions[f].cfg.graph.exit() == v)
                {
                    self.stack.pop();
                    self.resume();
                }
            }
        }
    }

    /// Returns the function that a call reaches. Returns `None` if the call fails or reaches a host
    /// function that is not imported.
    fn resolve(&mut self, callee: Callee) -> Option<FuncId> {
        let ty = match callee {
            Callee::Direct(f) => return Some(f),
            Callee::Indirect { ty, .. } => &self.program.types[ty],
        };
        let imports = self.program.imports.iter().map(|i| i.ty);
        let types = imports.chain(self.program.functions.iter().map(|f| f.ty));
        let fits = types.enumerate().filter(|(f, t)| {
            self.program.address_taken.contains(FuncId::new(*f)) && self.program.types[*t] == *ty
        });
        let fits: Vec<usize> = fits.map(|(f, _)| f).collect();
        if fits.is_empty() || self.random.one_in(100) {
            return None;
        }
        Some(FuncId::new(fits[self.random.below(fits.len())]))
    }

    fn defined(&self, f: FuncId) -> Option<usize> {
        f.index().checked_sub(self.program.imports.len())
    }

    fn count_import(&mut self, f: FuncId) {
        if let Some(calls) = &mut self.run.facts.import_calls {
            calls[f.index()] += 1;
        }
    }

    fn call(&mut self, callee: FuncId) {
        match self.defined(callee) {
            Some(f) => self.enter(f),
            None => {
                self.count_import(callee);
                if self.random.one_in(100) {
                    self.end(true);
                } else if self.random.one_in(10) {
                    // The host calls back. The call continues when the callback returns.
                    self.start_from_host();
                } else {
                    self.resume();
                }
            }
        }
    }

    /// Continues the new top frame after its call, if there is a frame. If the frame then reaches
    /// EXIT, it returns as well.
    fn resume(&mut self) {
        while let Some(&(f, _)) = self.stack.last() {
            self.leave();
            let exit = self.program.functions[f].cfg.graph.exit();
            if self.stack.last() != Some(&(f, exit)) {
                return;
            }
            self.stack.pop();
        }
    }

    /// Moves the top frame along one of the edges that leave its block. After a tail call, the
    /// frame is gone.
    fn leave(&mut self) {
        let Some(top) = self.stack.last_mut() else {
            return;
        };
        let (f, v) = *top;
        let cfg = &self.program.functions[f].cfg;
        let out = cfg.graph.out_edges(v);
        let e: EdgeId = out[self.random.below(out.len())];
        self.run.counts.functions[f].edges[e.index()] += 1;
        top.1 = cfg.graph.to(e);
        self.count_block();
        if matches!(cfg.blocks[v].end, BlockEnd::TailCall(_)) {
            self.stack.pop();
        }
    }

    /// Ends the run, or this part of the run, with all activations left in place.
    fn end(&mut self, callee_entered: bool) {
        let top = self.stack.len() - 1;
        for (i, &(f, block)) in self.stack.iter().enumerate() {
            self.run.facts.open.push(OpenFrame {
                function: self.program.functions[f].id,
                block,
                callee_entered: i < top || callee_entered,
            });
        }
        self.stack.clear();
    }

    fn finish(mut self) -> Run {
        let imports = self.program.imports.len();
        for frame in &self.run.facts.open {
            let open = &mut self.run.counts.functions[frame.function.index() - imports].open;
            match open.binary_search_by_key(&frame.block, |o| o.0) {
                Ok(i) => open[i].1 += 1,
                Err(i) => open.insert(i, (frame.block, 1)),
            }
        }
        self.run
    }
}

/// A xorshift generator (Marsaglia 2003). The same seed gives the same run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
