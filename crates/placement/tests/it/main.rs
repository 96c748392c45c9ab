//! Tests of placements from outside.

mod figures;
mod matroid;
mod optimality;
mod refusals;
mod runs;
mod scale;
mod weights;
