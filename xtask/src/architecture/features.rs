//! Checks that the engine is built only once. The command line, the benchmark and the tests must
//! use the same features of every crate outside the workspace. Otherwise, Cargo compiles the engine
//! again whenever one of them is built after another, which takes minutes.

use anyhow::Result;
use std::collections::BTreeSet;

/// The packages that users build separately, in addition to the tests of the whole workspace.
const SELECTIONS: &[&str] = &["afterimage", "afterimage-cli", "bench"];

/// Returns the violations. `cargo` runs Cargo and returns its output.
///
/// # Errors
/// Returns an error if Cargo fails.
pub fn check(cargo: impl Fn(&[&str]) -> Result<String>) -> Result<Vec<String>> {
    let tree = |edges: &str, selection: &[&str]| {
        let mut arguments = vec![
            "tree",
            "--locked",
            "--prefix",
            "none",
            "-f",
            "{p} [{f}]",
            "-e",
            edges,
        ];
        arguments.extend(selection);
        cargo(&arguments)
    };
    let tests = tree("normal,build,dev", &["--workspace"])?;
    let mut violations = Vec::new();
    for &package in SELECTIONS {
        let own = tree("normal,build", &["-p", package])?;
        violations.extend(differences(package, &own, &tests));
    }
    Ok(violations)
}

/// Returns the packages that `own` builds differently from `tests`, both as printed by `cargo
/// tree`.
fn differences(package: &str, own: &str, tests: &str) -> Vec<String> {
    let tests = units(tests);
    units(own)
        .difference(&tests)
        .map(|unit| {
            format!("`-p {package}` builds {unit}, and the tests build it with other features: give it the same features in both")
        })
        .collect()
}

/// Returns the packages with their features, without duplicates.
fn units(tree: &str) -> BTreeSet<&str> {
    tree.lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn a_feature_that_only_the_tests_have_is_found() {
        let tests = "own v0.1.0 []\nengine v1.0.0 [a]\nlibrary v1.0.0 [a,b]\n\nengine v1.0.0 [a] (*)\nextra v1.0.0 []\n";
        let same = "own v0.1.0 []\nengine v1.0.0 [a]\nlibrary v1.0.0 [a,b]\n";
        assert!(differences("own", same, tests).is_empty());
        let other = "own v0.1.0 []\nengine v1.0.0 [a]\nlibrary v1.0.0 [a]\n";
        let found = differences("own", other, tests);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("`-p own` builds library v1.0.0 [a], "));
    }
}
