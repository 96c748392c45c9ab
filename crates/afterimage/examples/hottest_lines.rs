//! The ten lines that a run executed most often: `cargo run --example hottest_lines -- app.aft`

use afterimage::Session;
use afterimage::profile::Scope;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("name a recording")?;
    Session::open(file.as_ref())?.profile(|profile| {
        let mut rows = profile.line_rows(&Scope::All)?;
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        for row in rows.iter().take(10) {
            println!(
                "{:>12}  {}:{}",
                row.count,
                profile.file(row.line.file),
                row.line.number
            );
        }
        Ok(())
    })?;
    Ok(())
}
