//! Checks that only programs print or end the process. Libraries must return their messages.

use super::files;
use anyhow::{Context, Result};
use std::path::Path;

/// The packages that may print. They are the programs, and `testkit`, which never ships but reports
/// skipped checks.
const PRINTING: &[&str] = &["cli", "bench", "testkit"];

/// The file that passes our standard streams to the guest.
const OF_GUEST: &str = "crates/record/src/output.rs";

/// The macros and functions that a library must not use.
const FORBIDDEN: &[&str] = &[
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "dbg!(",
    "io::stdout(",
    "io::stderr(",
    "process::exit(",
    "process::abort(",
];

/// Returns the violations in the sources of the libraries, except their unit tests.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for path in files(&root.join("crates"), "rs")? {
        let short = path.strip_prefix(root).unwrap_or(&path);
        let mut parts = short.components().skip(1).map(|part| part.as_os_str());
        let (package, kind) = (parts.next(), parts.next());
        let prints = PRINTING.iter().any(|&name| package == Some(name.as_ref()));
        if prints || short == Path::new(OF_GUEST) || kind != Some("src".as_ref()) {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        for (line, what) in find(&text) {
            violations.push(format!(
                "{}:{line}: `{what}…)` in a library; only programs print and choose exit codes",
                short.display()
            ));
        }
    }
    Ok(violations)
}

/// Returns the lines, from 1, that use something forbidden, except comments and unit tests.
fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    // The line that ends the test module, which is a brace with the same indentation as the
    // module's beginning.
    let mut end_of_tests: Option<String> = None;
    let mut tests_follow = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(end) = &end_of_tests {
            if line == end {
                end_of_tests = None;
            }
            continue;
        }
        let code = line.trim_start();
        if tests_follow && code.starts_with("mod ") && code.ends_with('{') {
            let indentation = &line[..line.len() - code.len()];
            end_of_tests = Some(format!("{indentation}}}"));
        }
        tests_follow = code == "#[cfg(test)]";
        if code.starts_with("//") || end_of_tests.is_some() {
            continue;
        }
        let uses = FORBIDDEN.iter().find(|&&what| {
            code.match_indices(what).any(|(at, _)| {
                let before = code[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        });
        found.extend(uses.map(|&what| (number + 1, what)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn uses_are_found_and_mentions_are_not() {
        let text = "\
/// Like println!(\"\").
fn f() {
    // eprintln!(\"\") would be wrong
    my_print!(\"fine\");
    println!(\"wrong\");
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    fn g() {
        eprintln!(\"fine\");
    }
}

fn h() { let out = std::io::stdout(); }
";
        assert_eq!(
            find(text),
            [(5, "println!("), (6, "process::exit("), (16, "io::stdout(")]
        );
    }
}
