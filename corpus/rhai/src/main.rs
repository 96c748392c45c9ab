//! `rhai FILE.rhai`: runs a script in Rhai.

use rhai::Engine;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: rhai FILE.rhai")?;
    let script = std::fs::read_to_string(path)?;
    // Otherwise the seed is drawn when the engine is compiled, so that versions differ.
    rhai::config::hashing::set_hashing_seed(Some([1, 2, 3, 4]))
        .map_err(|_| "the hash seed is already in use")?;
    let engine = Engine::new();
    engine.run(&script).map_err(|error| error.to_string())?;
    Ok(())
}
