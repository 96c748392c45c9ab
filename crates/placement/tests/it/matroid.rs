//! Checks that the whole-program placement is optimal. No cheaper set of counters may determine all
//! counts under the flow equations and the equations between functions.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId};
use afterimage_placement::{Mode, PlanOptions, Site, SplitCost, plan};
use afterimage_program::{BlockEnd, Callee, Program};
use afterimage_testkit::graphs::programs::programs;
use afterimage_testkit::graphs::walk::{Rules, walk};
use proptest::prelude::*;

/// All equations of a program, as dense rows. There is a row for each vertex of every function, and
/// one for each function that only direct calls and the host enter. The columns are the edges of
/// all functions, followed by the edges EXIT→root.
struct Equations {
    rows: Vec<Vec<f64>>,
    edge_column: Vec<usize>,
    columns: usize,
}

impl Equations {
    fn new(program: &Program) -> Self {
        let mut edge_column = Vec::new();
        let mut columns = 0;
        for f in &program.functions {
            edge_column.push(columns);
            columns += f.cfg.edges.len() + 1;
        }
        let mut this = Self {
            rows: Vec::new(),
            edge_column,
            columns,
        };
        for (i, f) in program.functions.iter().enumerate() {
            for v in f.cfg.graph.vertices() {
                let mut row = vec![0.0; this.columns];
                this.add_inflow(&mut row, i, &f.cfg.graph, v, 1.0);
                for &e in f.cfg.graph.out_edges(v) {
                    row[this.edge(i, e)] -= 1.0;
                }
                if v == f.cfg.graph.exit() {
                    row[this.entry(program, i)] -= 1.0;
                }
                this.rows.push(row);
            }
        }
        this.add_entries(program);
        this
    }

    fn edge(&self, f: usize, e: EdgeId) -> usize {
        self.edge_column[f] + e.index()
    }

    fn entry(&self, program: &Program, f: usize) -> usize {
        self.edge_column[f] + program.functions[f].cfg.edges.len()
    }

    fn add_inflow(&self, row: &mut [f64], f: usize, graph: &FlowGraph, v: BlockId, factor: f64) {
        for &e in graph.in_edges(v) {
            row[self.edge(f, e)] += factor;
        }
        if v == graph.root() {
            row[self.edge_column[f] + graph.edge_count()] += factor;
        }
    }

    /// Adds the indirect entries. Each is an unknown with its own column, and the unknowns of one
    /// type are tied together.
    fn add_entries(&mut self, program: &Program) {
        let imports = program.imports.len();
        let types = program
            .imports
            .iter()
            .map(|i| i.ty)
            .chain(program.functions.iter().map(|f| f.ty));
        let types: Vec<_> = types.map(|t| &program.types[t]).collect();
        let first_indirect = self.columns;
        self.columns += types.len();
        for row in &mut self.rows {
            row.resize(self.columns, 0.0);
        }
        // If no indirect call has a type, none enters a function of that type.
        let called: Vec<_> = program
            .functions
            .iter()
            .flat_map(|f| f.cfg.blocks.values())
            .filter_map(|b| match b.end {
                BlockEnd::Call(Callee::Indirect { ty, .. })
                | BlockEnd::TailCall(Callee::Indirect { ty, .. }) => Some(&program.types[ty]),
                _ => None,
            })
            .collect();
        let may_be_entered = |callee: usize| {
            program.address_taken.contains(FuncId::new(callee)) && called.contains(&types[callee])
        };
        for callee in 0..types.len() {
            let mut row = vec![0.0; self.columns];
            if let Some(f) = callee.checked_sub(imports) {
                row[self.entry(program, f)] += 1.0;
            }
            if may_be_entered(callee) {
                row[first_indirect + callee] -= 1.0;
            }
            self.add_calls(program, &mut row, |c| {
                c == Callee::Direct(FuncId::new(callee))
            });
            self.rows.push(row);
        }
        for (i, ty) in types.iter().enumerate() {
            if types[..i].contains(ty) {
                continue;
            }
            let mut row = vec![0.0; self.columns];
            for callee in (0..types.len()).filter(|&c| types[c] == *ty) {
                if may_be_entered(callee) {
                    row[first_indirect + callee] += 1.0;
                }
            }
            let of_type =
                |c| matches!(c, Callee::Indirect { ty: t, .. } if program.types[t] == **ty);
            self.add_calls(program, &mut row, of_type);
            self.rows.push(row);
        }
        // Calls through a type that no function has.
        for ty in program.types.values().filter(|ty| !types.contains(ty)) {
            let mut row = vec![0.0; self.columns];
            let of_type =
                |c| matches!(c, Callee::Indirect { ty: t, .. } if program.types[t] == *ty);
            self.add_calls(program, &mut row, of_type);
            self.rows.push(row);
        }
    }

    fn add_calls(&self, program: &Program, row: &mut [f64], is_called: impl Fn(Callee) -> bool) {
        for (i, f) in program.functions.iter().enumerate() {
            for (v, block) in f.cfg.blocks.iter() {
                if let BlockEnd::Call(callee) | BlockEnd::TailCall(callee) = block.end
                    && is_called(callee)
                {
                    self.add_inflow(row, i, &f.cfg.graph, v, -1.0);
                }
            }
        }
    }

    /// Returns the rank of the equations restricted to some columns.
    fn rank(&self, columns: &[usize]) -> usize {
        let mut rows: Vec<Vec<f64>> = self
            .rows
            .iter()
            .map(|row| columns.iter().map(|&c| row[c]).collect())
            .collect();
        let mut rank = 0;
        for k in 0..columns.len() {
            let candidates = rank..rows.len();
            let Some(best) =
                candidates.max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()))
            else {
                break;
            };
            if rows[best][k].abs() < 1e-9 {
                continue;
            }
            rows.swap(rank, best);
            let pivot = rows[rank].clone();
            for row in &mut rows[rank + 1..] {
                let factor = row[k] / pivot[k];
                for (x, p) in row.iter_mut().zip(&pivot).skip(k) {
                    *x -= factor * p;
                }
            }
            rank += 1;
        }
        rank
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_uncounted_edges_are_a_heaviest_independent_set(program in programs(), seed: u64) {
        let rules = Rules { steps: 300, ends_at_calls: false, host_uses_references: false };
        let run = walk(&program, rules, seed).expect("it may end anywhere");
        let mut options = PlanOptions::new(Mode::Program);
        options.feedback = Some(&run.counts);
        options.split_cost = SplitCost::FREE;
        let plan = plan(&program, &options).expect("a plan");

        let equations = Equations::new(&program);
        let mut edges = Vec::new();
        let mut counted = Vec::new();
        for (i, f) in program.functions.iter().enumerate() {
            for e in f.cfg.edges.keys() {
                edges.push((run.counts.functions[i].edges[e.index()], equations.edge(i, e)));
            }
            for probe in &plan.functions[i].probes {
                let e = match probe.site {
                    Site::Edge(e) => e,
                    Site::Block(v) => f.cfg.graph.out_edges(v)[0],
                };
                counted.push(equations.edge(i, e));
            }
        }
        // The values that no counter can measure: each function's entries, and its entries from
        // indirect calls.
        let is_edge = |c: &usize| edges.iter().any(|(_, edge)| edge == c);
        let hidden: Vec<usize> = (0..equations.columns).filter(|c| !is_edge(c)).collect();
        let used = |c: &usize| equations.rows.iter().any(|row| row[*c] != 0.0);
        let hidden: Vec<usize> = hidden.into_iter().filter(used).collect();

        // The plan determines everything.
        let mut uncounted = hidden.clone();
        uncounted.extend(edges.iter().map(|e| e.1).filter(|c| !counted.contains(c)));
        let hidden_rank = equations.rank(&hidden);
        prop_assert_eq!(equations.rank(&uncounted), hidden_rank + uncounted.len() - hidden.len());

        // The greedy algorithm on the definition finds nothing cheaper.
        edges.sort_by_key(|e| std::cmp::Reverse(e.0));
        let mut chosen = hidden;
        let mut rank = hidden_rank;
        let mut greedy = 0;
        for (weight, column) in edges.iter().copied() {
            chosen.push(column);
            let with = equations.rank(&chosen);
            if with > rank {
                rank = with;
            } else {
                chosen.pop();
                greedy += weight;
            }
        }
        let weight = |c: &usize| edges.iter().find(|e| e.1 == *c).map_or(0, |e| e.0);
        prop_assert_eq!(counted.iter().map(weight).sum::<u64>(), greedy);
    }
}
