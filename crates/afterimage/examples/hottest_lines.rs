//! The ten lines that a run executed most often: `cargo run --example hottest_lines -- app.aft`

use afterimage::Session;
use afterimage::profile::Scope;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("name a recording")?;
    let lines = Session::open(file.as_ref())?.profile(|profile| {
        let mut rows = profile.line_rows(&Scope::All)?;
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        let named = |line: afterimage::profile::Line, count| {
            (profile.file(line.file).to_owned(), line.line, count)
        };
        Ok(Vec::from_iter(
            rows.iter().take(10).map(|row| named(row.line, row.count)),
        ))
    })?;
    for (file, line, count) in lines {
        println!("{count:>12}  {file}:{line}");
    }
    Ok(())
}
