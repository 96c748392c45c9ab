//! Compiles the Lua library for WASI, which lua-src itself only does with a newer clang and its exceptions.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=LUA_SOURCE");
    println!("cargo::rerun-if-changed=shim");
    let Some(folder) = std::env::var_os("LUA_SOURCE").map(PathBuf::from) else {
        println!(
            "cargo::error=LUA_SOURCE is not set: build this guest with `cargo xtask corpus --only lua`"
        );
        return;
    };
    // The interpreter's own main is not part of the crate; every other file is the library.
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => {
            println!("cargo::error={}: {error}", folder.display());
            return;
        }
    };
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    cc::Build::new()
        .files(files)
        .include("shim")
        .flag("-include")
        .flag("shim/wasi.h")
        .warnings(false)
        .compile("lua");
}
