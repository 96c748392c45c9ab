//! The coverage of a test run, as lcov: `cargo run --example coverage -- test.aft > coverage.info`

use afterimage::Session;
use afterimage::present::export::lcov;
use afterimage::profile::Scope;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("name a recording")?;
    let session = Session::open(file.as_ref())?;
    let sources = &**session.sources();
    session.profile(|profile| {
        let out = &mut std::io::stdout();
        Ok(lcov(out, profile, &Scope::All, None, sources)?)
    })?;
    Ok(())
}
