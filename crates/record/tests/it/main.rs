//! Tests of recording, of re-running recorded guests, and of the data stored about runs.

mod corpus;
mod exact;
mod guests;
mod harness;
mod machine;
mod numeric;
mod play;
mod random;
mod slices;
mod stepped;
mod stored;
mod suite;
mod wet;
