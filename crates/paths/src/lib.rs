//! How the path of a run is written down while it runs, and how it is read back.
//!
//! Two ways: witnesses on edges (Ball and Larus, "Optimally Profiling and Tracing Programs", 1992, section 4)
//! and path numbers (Ball and Larus, "Efficient Path Profiling", 1996). Pure: the product is a plan, and
//! later, from the codes that a run wrote, the sequence of its paths.

pub mod witness;
