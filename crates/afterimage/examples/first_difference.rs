//! The first difference between two runs of a program:
//! `cargo run --example first_difference -- good.aft bad.aft`

use afterimage::present::StepRow;
use afterimage::{DiffQuery, Differences, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args_os().skip(1);
    let mut open = || Session::open(files.next().unwrap_or_default().as_ref());
    let (good, bad) = (open()?, open()?);
    let query = DiffQuery {
        lines: false,
        top: None,
    };
    let Differences::Runs(found) = good.diff(&bad, query)? else {
        println!("these are runs of different programs");
        return Ok(());
    };
    let Some(first) = found.first else {
        println!("the runs are the same");
        return Ok(());
    };
    let step = |step: &Option<StepRow>| match step {
        Some(step) => format!("{} at t={}: {:?}", step.function.name, step.t, step.what),
        None => "it has ended".to_owned(),
    };
    println!("good: {}\nbad:  {}", step(&first.a), step(&first.b));
    Ok(())
}
