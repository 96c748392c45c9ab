//! `boa FILE.js`: runs a script in the Boa engine and prints its last value.

use boa_engine::{Context, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: boa FILE.js")?;
    let script = std::fs::read(path)?;
    let mut context = Context::default();
    let value = context
        .eval(Source::from_bytes(&script))
        .map_err(|error| error.to_string())?;
    let text = value
        .to_string(&mut context)
        .map_err(|error| error.to_string())?;
    println!("{}", text.to_std_string_escaped());
    Ok(())
}
