//! The cost of control-flow traces.

use std::time::Instant;

use afterimage_paths::{Cuts, ExecutedPath, FinalFrame, Finish, PathPlan, Regenerator, Sink};
use afterimage_ids::{FuncId, NodeId};
use afterimage_program::Program;
use afterimage_record::GrammarSink;
use afterimage_record::measure::{Setting, compile};
use afterimage_rewrite::{Options, PathProbes, Probes, rewrite};
use anyhow::Result;

use crate::Arguments;
use crate::corpus::entries;

struct Nothing(u32, u64);
impl Sink for Nothing {
    fn define(&mut self, _: ExecutedPath<'_>) -> NodeId { self.0 += 1; NodeId::from_u32(self.0 - 1) }
    fn path(&mut self, _: NodeId) { self.1 += 1; }
    fn enter(&mut self, _: FuncId) {}
    fn leave(&mut self) {}
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut product = (0.0, 0.0, 0.0, 0);
    for entry in entries(arguments)? {
        let bytes = entry.module(&arguments.corpus)?;
        let program = Program::parse(&bytes)?;
        let command = entry.command(&arguments.corpus);
        let setting = Setting::default();
        let plain = compile(setting, &bytes)?;
        let through: u64 = std::env::var("THROUGH").map_or(64, |v| v.parse().unwrap());
        let exits = std::env::var("EXITS").is_err();
        let plan = PathPlan::new(&program, None, Cuts { through, loop_exits: exits })?;
        let probes = PathProbes { plan: &plan, in_memory: &[], half: 1 << 17 };
        let rewritten = rewrite(&bytes, &program, Probes::Paths(probes), &Options::default())?;
        let traced = compile(setting, &rewritten.module)?;
        let (mut a, mut b, mut w) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arguments.runs {
            a.push(plain.run(&command)?.cpu_seconds);
            let run = traced.run_traced(&command, &plan, rewritten.layout, |_| {})?;
            b.push(run.cpu_seconds);
            w.push(run.wall_seconds);
        }
        a.sort_by(f64::total_cmp);
        b.sort_by(f64::total_cmp);
        let (x, y) = (a[a.len() / 2], b[b.len() / 2]);
        let mut words: Vec<u64> = Vec::new();
        let start = program.exports.iter().find(|e| e.0 == "_start").unwrap().1;
        traced.run_traced(&command, &plan, rewritten.layout, |w| words.extend_from_slice(w))?;
        let t = Instant::now();
        let mut regenerator = Regenerator::new(&program, &plan);
        regenerator.host_call(start);
        let mut nothing = Nothing(0, 0);
        regenerator.feed(&words, &mut nothing)?;
        let decode = t.elapsed().as_secs_f64();
        let blocks = regenerator.time();
        let t = Instant::now();
        let mut regenerator = Regenerator::new(&program, &plan);
        regenerator.host_call(start);
        let mut segments = Vec::new();
        let mut contexts: Vec<afterimage_wpp::codec::NodeContext> = Vec::new();
        let mut sink = GrammarSink::new(Default::default(), |s, c: &[_]| { segments.push(s); contexts = c.to_vec(); });
        regenerator.feed(&words, &mut sink)?;
        let nodes = sink.finish();
        let build = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let mut stored = 0;
        let mut symbols = 0;
        for s in &segments {
            stored += afterimage_wpp::codec::encode(s, &contexts).len();
            symbols += s.grammar.symbols.len();
        }
        let encode = t.elapsed().as_secs_f64();
        let m = blocks as f64 / 1e6;
        println!("{:15} plain {x:.3} traced {:.3} compile {:.2} | {m:.0} Mblocks {:.1} Mpaths, bits/block {:.3} | decode {:.0} M/s, +build {:.0} M/s, +encode {:.0} M/s | nodes {} segments {} symbols {:.2}M stored bits/block {:.4}",
            entry.name, y / x, traced.compile_seconds / plain.compile_seconds, nothing.1 as f64 / 1e6, words.len() as f64 * 64e-6 / m,
            m / decode, m / build, m / (build + encode), nodes.nodes.len(), segments.len(), symbols as f64 / 1e6, stored as f64 * 8e-6 / m);
        product.0 += (y / x).ln();
        product.1 += (words.len() as f64 * 64e-6 / m).ln();
        product.2 += (stored as f64 * 8e-6 / m).ln();
        product.3 += 1;
        let _ = (Finish::Done, FinalFrame { function: start, block: afterimage_ids::BlockId::from_u32(0) });
    }
    let n = f64::from(product.3);
    println!("geometric: time {:.3} bits {:.3} stored {:.4}", (product.0 / n).exp(), (product.1 / n).exp(), (product.2 / n).exp());
    Ok(())
}
