//! `batsat < FILE.cnf`: decides whether a formula in DIMACS form is satisfiable.

use batsat::{BasicSolver, SolverInterface, dimacs, lbool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut solver = BasicSolver::default();
    dimacs::parse(&mut std::io::stdin().lock(), &mut solver, false, false)?;
    let answer = solver.solve_limited(&[]);
    let answer = if answer == lbool::TRUE {
        "satisfiable"
    } else if answer == lbool::FALSE {
        "unsatisfiable"
    } else {
        "unknown"
    };
    println!(
        "{} variables, {} clauses: {answer}",
        solver.num_vars(),
        solver.num_clauses()
    );
    println!(
        "{} conflicts, {} decisions, {} propagations, {} restarts",
        solver.num_conflicts(),
        solver.num_decisions(),
        solver.num_propagations(),
        solver.num_restarts()
    );
    Ok(())
}
