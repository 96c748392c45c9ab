//! The cost of control-flow traces.

use std::sync::atomic::{AtomicU64, Ordering};

use afterimage_paths::{Cuts, PathPlan};
use afterimage_program::Program;
use afterimage_record::measure::{Setting, compile};
use afterimage_rewrite::{Options, PathProbes, Probes, rewrite};
use anyhow::Result;

use crate::Arguments;
use crate::corpus::entries;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for entry in entries(arguments)? {
        let bytes = entry.module(&arguments.corpus)?;
        let program = Program::parse(&bytes)?;
        let command = entry.command(&arguments.corpus);
        let setting = Setting::default();
        let plain = compile(setting, &bytes)?;
        let through: u64 = std::env::var("THROUGH").map_or(64, |v| v.parse().unwrap());
        let exits = std::env::var("EXITS").is_err();
        let plan = PathPlan::new(
            &program,
            None,
            Cuts {
                through,
                loop_exits: exits,
            },
        )?;
        let probes = PathProbes {
            plan: &plan,
            in_memory: &[],
            half: 1 << 17,
        };
        let rewritten = rewrite(&bytes, &program, Probes::Paths(probes), &Options::default())?;
        let traced = compile(setting, &rewritten.module)?;
        let (mut a, mut b, mut w) = (Vec::new(), Vec::new(), Vec::new());
        let mut bits = 0;
        for _ in 0..arguments.runs {
            a.push(plain.run(&command)?.cpu_seconds);
            let total = AtomicU64::new(0);
            let run = traced.run_traced(&command, &plan, rewritten.layout, |words| {
                total.fetch_add(words.len() as u64, Ordering::Relaxed);
            })?;
            b.push(run.cpu_seconds);
            w.push(run.wall_seconds);
            bits = total.into_inner() * 64;
        }
        a.sort_by(f64::total_cmp);
        b.sort_by(f64::total_cmp);
        let (x, y) = (a[a.len() / 2], b[b.len() / 2]);
        println!(
            "{:20} plain {x:.3} traced {y:.3} ratio {:.3} compile {:.2} Mbits {:.1}",
            entry.name,
            y / x,
            traced.compile_seconds / plain.compile_seconds,
            bits as f64 / 1e6
        );
    }
    Ok(())
}
