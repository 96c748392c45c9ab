//! Measures the cost of splitting an edge on this engine.
//!
//! The benchmark runs plans made under several charges in turn. The best charge is the one with the
//! fastest plans, even if these plans execute more increments.

use afterimage_placement::{Mode, PlanOptions, SplitCost, plan};
use afterimage_program::Program;
use afterimage_record::measure::{Compiled, Setting, compile};
use afterimage_rewrite::{Options, rewrite};
use anyhow::{Context, Result};

use crate::Arguments;
use crate::corpus::entries;
use crate::statistics::{Sample, geometric};
use crate::table::Table;

/// The charges for a taken branch and for a `br_table` target.
const CHARGES: [(f64, f64); 6] = [
    (1.0, 1.0),
    (1.05, 1.3),
    (1.3, 2.0),
    (1.7, 3.0),
    (2.5, 4.0),
    (4.0, 6.0),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let header: Vec<String> = CHARGES
        .iter()
        .map(|(taken, table)| format!("{taken}/{table}"))
        .collect();
    let mut columns = vec!["program"];
    columns.extend(header.iter().map(String::as_str));
    let mut table = Table::new(&columns);
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); CHARGES.len()];
    for entry in entries(arguments)? {
        eprintln!("{} …", entry.name);
        let bytes = entry.module(&arguments.corpus)?;
        let program = Program::parse(&bytes).with_context(|| entry.name.clone())?;
        let command = entry.command(&arguments.corpus);
        let mut modules: Vec<Compiled> = vec![compile(Setting::default(), &bytes)?];
        for (taken, table) in CHARGES {
            let split_cost = SplitCost {
                taken,
                table,
                ..SplitCost::default()
            };
            let plan = plan(
                &program,
                &PlanOptions {
                    split_cost,
                    ..PlanOptions::new(Mode::Program)
                },
            )?;
            let module = rewrite(&bytes, &program, Some(&plan), &Options::default())?.module;
            modules.push(compile(Setting::default(), &module)?);
        }
        let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); modules.len()];
        for round in 0..=arguments.runs {
            for (module, times) in modules.iter().zip(&mut seconds) {
                let time = module.run(&command)?.cpu_seconds;
                if round > 0 {
                    times.push(time);
                }
            }
        }
        let mut cells = vec![entry.name.clone()];
        for (column, times) in all.iter_mut().zip(&seconds[1..]) {
            let ratio = Sample::ratios(times, &seconds[0]);
            cells.push(format!(
                "{:.3} ({:.2}–{:.2})",
                ratio.median, ratio.min, ratio.max
            ));
            column.push(ratio.median);
        }
        table.row(cells);
    }
    let mut cells = vec!["geometric mean".to_owned()];
    cells.extend(
        all.iter()
            .map(|column| format!("{:.3}", geometric(column.iter().copied()))),
    );
    table.row(cells);
    println!(
        "Time as a ratio to the plain module, by the charge for splitting a taken branch / a br_table edge\n"
    );
    println!("{}", table.markdown());
    Ok(())
}
