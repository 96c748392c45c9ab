//! Witness tracing (Ball and Larus 1992, section 4).
