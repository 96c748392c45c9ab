//! Compares the size of encoded segments with the entropy of their sources. `cargo test -p
//! afterimage-wpp codec_sizes -- --nocapture` prints the figures.

use crate::codec_support::*;
use afterimage_wpp::codec::{
    Limits, NodeContext, canonical, decode, encode, encode_nodes, encode_summary,
};
use afterimage_wpp::{Segment, Symbol};
use std::time::{Duration, Instant};

const LIMITS: Limits = Limits {
    symbols: 1 << 26,
    nodes: 1 << 24,
    functions: 1 << 24,
    open: 1 << 20,
};

/// Returns the size of a segment in bits per terminal. Prints the size, and how many million
/// terminals are written and read per second.
fn size(what: &str, segment: &Segment, contexts: &[NodeContext], terminals: u64) -> f64 {
    let timed = |start: Instant| start.elapsed().max(Duration::from_nanos(1)).as_secs_f64();
    let start = Instant::now();
    let bytes = encode(segment, contexts);
    let encoding = timed(start);
    let start = Instant::now();
    let decoded = decode(&bytes, contexts, &LIMITS).unwrap();
    let decoding = timed(start);
    assert_eq!(decoded, canonical(segment, contexts).unwrap());
    let symbols = |s: &Segment| s.grammar.symbols.len() + s.grammar.rules.len() + s.root.len();
    let rate = |seconds: f64| terminals as f64 / seconds / 1e6;
    println!(
        "{what}: {} bytes, {:.1} and {:.1} M terminals/s, {} rules and symbols, {} again",
        bytes.len(),
        rate(encoding),
        rate(decoding),
        symbols(segment),
        symbols(&decoded)
    );
    8.0 * bytes.len() as f64 / terminals as f64
}

/// Checks that a size is at most `most` times an entropy, both in bits per terminal.
fn within(what: &str, bits: f64, entropy: f64, most: f64) {
    println!(
        "{what}: {bits:.4} of {entropy:.4} bits per terminal: {:.3}",
        bits / entropy
    );
    assert!(bits <= most * entropy, "{what}");
}

fn sample(what: &str, sample: &Sample, most: f64) {
    let terminals = sample.path.len() as u64;
    let entropy = sample.bits / terminals as f64;
    for (form, segment) in [("flat", flat(&sample.path)), ("built", built(&sample.path))] {
        for (known, contexts) in [("", &sample.contexts[..]), (", nodes unknown", &[])] {
            let what = format!("{what}, {form}{known}");
            within(
                &what,
                size(&what, &segment, contexts, terminals),
                entropy,
                most,
            );
        }
    }
}

#[test]
fn markov_sources() {
    sample("300 points, 0.9", &markov(300, 0.9, 300_000, 1), 1.12);
    sample("300 points, 0.7", &markov(300, 0.7, 300_000, 2), 1.08);
    sample("3000 points, 0.9", &markov(3000, 0.9, 300_000, 2), 1.12);
    sample("100 points, 0.97", &markov(100, 0.97, 300_000, 3), 1.15);
}

#[test]
fn interpreters() {
    sample("likely branches", &interpreter(60, 0.9, 300_000, 4), 1.35);
    sample("random branches", &interpreter(60, 0.6, 300_000, 5), 1.15);
}

#[test]
fn programs_of_loops_branches_and_calls() {
    let programs = [
        (0.9, 0.5, 1, 1.45),
        (0.9, 0.5, 2, 1.4),
        (0.99, 0.9, 3, 1.3),
        (0.9, 0.2, 4, 1.15),
        (0.8, 0.5, 5, 1.5),
        (1.0, 1.0, 6, 2.0),
        (0.97, 0.8, 7, 1.7),
    ];
    for (skew, regular, seed, most) in programs {
        let run = program(skew, regular, 500_000, seed);
        for (known, contexts) in [("", &run.contexts[..]), (", nodes unknown", &[])] {
            let what = format!("program {seed}{known}");
            let bits = size(&what, &run.segment, contexts, run.terminals);
            let most = if known.is_empty() { most } else { 1.2 * most };
            within(&what, bits, run.bits / run.terminals as f64, most);
            println!(
                "{what}: {:.4} bits per block",
                bits * run.terminals as f64 / run.blocks as f64
            );
        }
    }
}

#[test]
fn what_recurs_costs_little_more() {
    let once = markov(300, 0.8, 20_000, 9).path;
    let thrice = [&once[..], &once, &once].concat();
    let size = |path: &[u32]| encode(&built(path), &[]).len();
    println!("once {}, three times {}", size(&once), size(&thrice));
    assert!(size(&thrice) < size(&once) * 5 / 4);
}

#[test]
fn what_was_dissolved_is_folded_again() {
    let path = markov(300, 0.9, 200_000, 1).path;
    for segment in [flat(&path), built(&path)] {
        let decoded = canonical(&segment, &[]).unwrap();
        assert!(decoded.root.len() == 1 && decoded.grammar.symbols.len() < path.len() / 8);
        let used = decoded
            .grammar
            .symbols
            .iter()
            .filter_map(|symbol: &Symbol| symbol.as_rule());
        assert_eq!(
            used.collect::<std::collections::HashSet<_>>().len() + 1,
            decoded.grammar.rules.len()
        );
    }
}

#[test]
fn node_tables_and_summaries_are_small() {
    let run = program(0.9, 0.5, 500_000, 2);
    let nodes = run.nodes.len();
    let blocks: usize = run.nodes.values().map(|node| node.blocks.len()).sum();
    let table = encode_nodes(&run.nodes).len();
    let counted = canonical(&run.segment, &run.contexts).unwrap();
    let summary = encode_summary(&counted.summary()).len();
    println!("{nodes} nodes of {blocks} blocks: {table} bytes; {summary} bytes of counts");
    assert!(table < blocks * 4 / 10 && summary < nodes * 2);
}
