//! The coverage of a test run, as lcov: `cargo run --example coverage -- test.aft > coverage.info`

use afterimage::Session;
use afterimage::present::export::lcov;
use afterimage::profile::Scope;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("name a recording")?;
    let session = Session::open(file.as_ref())?;
    session.profile(|profile| Ok(lcov(&mut std::io::stdout(), profile, &Scope::All, None)?))?;
    Ok(())
}
