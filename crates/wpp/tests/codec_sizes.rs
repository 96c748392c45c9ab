//! The size of encoded segments against the entropy of their sources.

mod codec_support;

use afterimage_wpp::Segment;
use afterimage_wpp::codec::{CodecError, Limits, NodeContext, canonical, decode, encode};
use codec_support::*;
use std::time::Instant;

const LIMITS: Limits = Limits {
    symbols: 1 << 26,

    nodes: 1 << 24,
    functions: 1 << 24,
    open: 1 << 20,
};

fn size(segment: &Segment, contexts: &[NodeContext]) -> usize {
    let start = Instant::now();
    let bytes = encode(segment, contexts);
    let encoded = start.elapsed();
    let start = Instant::now();
    let decoded = decode(&bytes, contexts, &LIMITS);
    let time = start.elapsed();
    assert!(decoded == canonical(segment));
    let symbols = segment.grammar.symbols.len() + segment.root.len();
    println!(
        "    {symbols} symbols, {} bytes, {} symbols again, {:.1} / {:.1} M symbols/s",
        bytes.len(),
        decoded.map_or(0, |s| s.grammar.symbols.len()),
        symbols as f64 / encoded.as_secs_f64() / 1e6,
        symbols as f64 / time.as_secs_f64() / 1e6
    );
    bytes.len()
}

#[test]
fn measure() -> Result<(), CodecError> {
    let samples = [
        ("markov 300 0.9 1M", markov(300, 0.9, 1_000_000, 1)),
        ("markov 300 0.7 1M", markov(300, 0.7, 1_000_000, 2)),
        ("markov 3000 0.9 200k", markov(3000, 0.9, 200_000, 2)),
        ("markov 100 0.97 500k", markov(100, 0.97, 500_000, 3)),
        ("interpreter 0.9", interpreter(60, 0.9, 1_000_000, 4)),
        ("interpreter 0.6", interpreter(60, 0.6, 1_000_000, 5)),
    ];
    for (name, sample) in samples {
        let count = sample.path.len() as f64;
        println!("{name}: {:.4} bits/terminal", sample.bits / count);
        for (kind, segment) in [
            ("flat", flat(&sample.path)),
            ("parsed", built(&sample.path)),
        ] {
            for contexts in [&sample.contexts[..]] {
                let bits = 8.0 * size(&segment, contexts) as f64;
                println!(
                    "  {kind:6} {}: {:.4} bits/terminal, {:+.1} %",
                    if contexts.is_empty() { "bare" } else { "ctxt" },
                    bits / count,
                    100.0 * (bits / sample.bits - 1.0)
                );
            }
        }
    }
    for (skew, regular, seed) in [
        (0.9, 0.5, 1),
        (0.9, 0.5, 2),
        (0.99, 0.9, 3),
        (0.9, 0.2, 4),
        (0.8, 0.5, 5),
        (1.0, 1.0, 6),
        (0.97, 0.8, 7),
    ] {
        let run = program(skew, regular, 500_000, seed);
        let (count, blocks) = (run.terminals as f64, run.blocks as f64);
        println!(
            "program {seed}: {:.4} bits/terminal, {:.4} bits/block",
            run.bits / count,
            run.bits / blocks
        );
        for contexts in [&run.contexts[..]] {
            let bits = 8.0 * size(&run.segment, contexts) as f64;
            println!(
                "  {} {:.4} bits/terminal, {:+.1} %, {:.4} bits/block",
                if contexts.is_empty() { "bare" } else { "ctxt" },
                bits / count,
                100.0 * (bits / run.bits - 1.0),
                bits / blocks
            );
        }
    }
    Ok(())
}
