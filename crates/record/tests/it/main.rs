//! Tests of recording, of what runs recorded guests again, and of what is kept of runs.

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
