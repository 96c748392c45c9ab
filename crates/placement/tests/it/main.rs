//! Integration tests of placements.

mod figures;
mod matroid;
mod optimality;
mod refusals;
mod runs;
mod scale;
mod weights;
