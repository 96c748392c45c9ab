//! Chooses a program's counters.

use afterimage_graph::SpanningForest;
use afterimage_ids::{BlockId, CounterId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, Function, Program};

use crate::call_frequency::call_frequencies;
use crate::coupling::{Coupling, HostKnowledge, coupled_calls};
use crate::effect::Effects;
use crate::elimination::{Column, Elimination, Limits, Verdict};
use crate::weights::program_likelihoods;
use crate::{FunctionPlan, Mode, Plan, PlanError, PlanOptions, Probe, Site, Weights};

/// The maximum number of labelled edges on a cycle for which derivation is considered.
const LONGEST_CYCLE: usize = 512;

/// The limits on columns. Chords whose columns are denser keep their counters.
const FILL: Limits = Limits {
    entries: 128,
    work: 4096,
};

/// Chooses the counters for a program. Time: near-linear in the program's size.
///
/// # Errors
/// Returns an error in the cases of [`PlanError`].
pub fn plan(program: &Program, options: &PlanOptions<'_>) -> Result<Plan, PlanError> {
    let chords_only = matches!(options.mode, Mode::Quick | Mode::Feedback);
    if options.standalone && !chords_only {
        return Err(PlanError::StandaloneUnsupported);
    }
    let mut derived = Vec::new();
    let sites = match options.mode {
        Mode::Slow => program
            .functions
            .iter()
            .map(|f| every_block(&f.cfg))
            .collect(),
        Mode::Edges => program
            .functions
            .iter()
            .map(|f| every_edge(&f.cfg))
            .collect(),
        Mode::Quick | Mode::Feedback | Mode::Program => {
            let weights = program_weights(program, options)?;
            let forests = spanning_forests(program, options, &weights);
            if options.mode == Mode::Program {
                derived = derivable(program, options, &weights, &forests);
            }
            chord_sites(program, options, &forests, &derived)
        }
    };
    let (functions, counters) = number(sites)?;
    Ok(Plan {
        mode: options.mode,
        standalone: options.standalone,
        functions,
        counters,
        derived,
        needs_import_calls: options.mode == Mode::Program && options.host_counts_import_calls,
        host_uses_references: options.host_uses_references,
    })
}

fn every_block(cfg: &Cfg) -> Vec<Site> {
    let blocks = cfg.blocks.iter();
    blocks
        .filter(|(_, b)| b.kind == BlockKind::Code)
        .map(|(v, _)| Site::Block(v))
        .collect()
}

fn every_edge(cfg: &Cfg) -> Vec<Site> {
    cfg.edges.keys().map(|e| edge_site(cfg, e)).collect()
}

/// Decides where to count an edge.
///
/// A tail call through a table may trap, and so may a throw of a null reference. A probe right
/// before such an operator would already have counted the edge. A block that ends this way has only
/// one way out, so its executions are counted at its beginning. Activations that ended in the block
/// are subtracted.
fn edge_site(cfg: &Cfg, e: EdgeId) -> Site {
    let from = cfg.edges[e].from;
    match cfg.blocks[from].end {
        BlockEnd::TailCall(Callee::Indirect { .. }) | BlockEnd::Throw => Site::Block(from),
        _ => Site::Edge(e),
    }
}

/// Returns the blocks in which a standalone run may have ended. They make a call or execute
/// `unreachable`.
pub(crate) fn may_end(function: &Function) -> impl Iterator<Item = BlockId> + '_ {
    let blocks = function.cfg.blocks.iter();
    blocks
        .filter(|(_, b)| matches!(b.end, BlockEnd::Call(_) | BlockEnd::Unreachable))
        .map(|(v, _)| v)
}

/// Computes the weights of every function for one activation, from the heuristic or from an earlier
/// run.
///
/// # Errors
/// Returns an error if the counts belong to another program.
pub fn function_weights(
    program: &Program,
    feedback: Option<&Counts>,
) -> Result<Vec<Weights>, PlanError> {
    let mode = feedback.map_or(Mode::Quick, |_| Mode::Feedback);
    let options = PlanOptions {
        feedback,
        ..PlanOptions::new(mode)
    };
    program_weights(program, &options)
}

/// Computes the weights of every function for one activation. If they must be comparable between
/// functions, computes them for a run.
fn program_weights(
    program: &Program,
    options: &PlanOptions<'_>,
) -> Result<Vec<Weights>, PlanError> {
    let feedback = match (options.mode, options.feedback) {
        (Mode::Quick, _) | (Mode::Program, None) => None,
        (_, Some(counts)) => Some(check_feedback(program, counts)?),
        (_, None) => return Err(PlanError::NoFeedback),
    };
    let likelihoods = program_likelihoods(program);
    let mut weights = afterimage_parallel::map(likelihoods.len(), |i| {
        let graph = &program.functions[i].cfg.graph;
        Weights::heuristic(graph, |e| likelihoods[i][e.index()])
    });
    if let Some(counts) = feedback {
        for (weights, counts) in weights.iter_mut().zip(&counts.functions) {
            *weights = Weights::feedback(counts, weights);
        }
    } else if options.mode == Mode::Program {
        let frequencies = call_frequencies(program, &weights);
        for (weights, frequency) in weights.iter_mut().zip(frequencies) {
            weights.scale(frequency);
        }
    }
    Ok(weights)
}

fn check_feedback<'a>(program: &Program, counts: &'a Counts) -> Result<&'a Counts, PlanError> {
    let (expected, found) = (program.functions.len(), counts.functions.len());
    if expected != found {
        return Err(PlanError::FeedbackOfAnotherProgram { expected, found });
    }
    for (f, counts) in program.functions.iter().zip(&counts.functions) {
        let is_block = |v: BlockId| f.cfg.blocks.is_valid(v);
        if counts.edges.len() != f.cfg.edges.len() || !counts.open.iter().all(|o| is_block(o.0)) {
            return Err(PlanError::FeedbackOfAnotherFunction(f.id));
        }
    }
    Ok(counts)
}

fn spanning_forests(
    program: &Program,
    options: &PlanOptions<'_>,
    weights: &[Weights],
) -> Vec<SpanningForest> {
    let functions = program.functions.iter().zip(weights);
    functions
        .map(|(f, weights)| {
            let exit = f.cfg.graph.exit();
            let virtual_edges: Vec<(BlockId, BlockId)> = if options.standalone {
                may_end(f).map(|v| (v, exit)).collect()
            } else {
                Vec::new()
            };
            SpanningForest::maximum(&f.cfg.graph, &virtual_edges, |e| {
                weights.edge(e) * options.split_cost.factor(&f.cfg, e)
            })
        })
        .collect()
}

/// A chord, and the cost saved by deriving it instead of counting it.
struct Candidate {
    saving: f64,
    function: u32,
    edge: EdgeId,
    column: Column,
}

/// Finds the chords that need no counter because the equations between functions determine them.
///
/// The flow equations of all functions and the coupling equations form one linear matroid. This
/// matroid has more equations than the graphic matroid of the functions alone, so one of its
/// maximum-weight independent sets contains the maximum spanning trees. The greedy algorithm
/// continues from these trees with the chords. A chord's column says how its fundamental cycle
/// changes the coupling equations. The chord may stay uncounted if its column is independent of the
/// earlier columns.
fn derivable(
    program: &Program,
    options: &PlanOptions<'_>,
    weights: &[Weights],
    forests: &[SpanningForest],
) -> Vec<(FuncId, EdgeId)> {
    let host = HostKnowledge {
        counts_import_calls: options.host_counts_import_calls,
        uses_references: options.host_uses_references,
    };
    let coupling = Coupling::new(program, host);
    let mut candidates = Vec::new();
    for (i, (f, forest)) in program.functions.iter().zip(forests).enumerate() {
        let calls = coupled_calls(program, &coupling, i);
        let effects = Effects::new(&f.cfg.graph, forest, coupling.of_function(f.id), calls);
        for edge in forest.chords() {
            let column = effects
                .column(edge, LONGEST_CYCLE)
                .filter(|c| !c.is_empty());
            candidates.extend(column.map(|column| Candidate {
                saving: weights[i].edge(edge) * options.split_cost.factor(&f.cfg, edge),
                function: i as u32,
                edge,
                column,
            }));
        }
    }
    candidates.sort_by(|a, b| b.saving.total_cmp(&a.saving));
    let mut elimination = Elimination::new(coupling.call_sites().to_vec());
    candidates
        .into_iter()
        .filter(|c| elimination.insert(&c.column, FILL) == Verdict::Independent)
        .map(|c| (program.functions[c.function as usize].id, c.edge))
        .collect()
}

fn chord_sites(
    program: &Program,
    options: &PlanOptions<'_>,
    forests: &[SpanningForest],
    derived: &[(FuncId, EdgeId)],
) -> Vec<Vec<Site>> {
    let mut derived = derived.to_vec();
    derived.sort_unstable();
    let functions = program.functions.iter().zip(forests);
    functions
        .map(|(f, forest)| {
            let chords = forest.chords();
            let counted = chords.filter(|&e| derived.binary_search(&(f.id, e)).is_err());
            let mut sites: Vec<Site> = counted.map(|e| edge_site(&f.cfg, e)).collect();
            // Both EXIT→root and root→EXIT would be unmeasured, and they form a cycle.
            let root = f.cfg.graph.root();
            if options.standalone && may_end(f).any(|v| v == root) {
                sites.push(Site::Block(root));
            }
            sites
        })
        .collect()
}

fn number(sites: Vec<Vec<Site>>) -> Result<(Vec<FunctionPlan>, u32), PlanError> {
    let total: usize = sites.iter().map(Vec::len).sum();
    let counters = u32::try_from(total).map_err(|_| PlanError::TooManyCounters)?;
    let mut numbers = (0..counters).map(CounterId::from_u32);
    let functions = sites.into_iter().map(|mut sites| {
        sites.sort_unstable();
        let probes = sites.into_iter().zip(&mut numbers);
        FunctionPlan {
            probes: probes
                .map(|(site, counter)| Probe { site, counter })
                .collect(),
        }
    });
    Ok((functions.collect(), counters))
}
