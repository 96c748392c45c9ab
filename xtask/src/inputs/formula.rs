//! Generates random 3-SAT formulas in DIMACS form. Their ratio of clauses to variables is near
//! 4.26, where deciding is hardest (Mitchell, Selman and Levesque 1992).

use super::rng::Rng;
use std::fmt::Write;

/// Generates a formula of `clauses` clauses, each over three different variables. There must be at
/// least three `variables`.
pub fn generate(seed: u64, variables: usize, clauses: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = format!("p cnf {variables} {clauses}\n");
    for _ in 0..clauses {
        let mut chosen = [0; 3];
        for position in 0..3 {
            let mut variable = 1 + rng.below(variables);
            while chosen[..position].contains(&variable) {
                variable = 1 + rng.below(variables);
            }
            chosen[position] = variable;
            let sign = if rng.chance(50) { "-" } else { "" };
            // Writing to a `String` cannot fail.
            let _ = write!(out, "{sign}{variable} ");
        }
        out.push_str("0\n");
    }
    out
}
