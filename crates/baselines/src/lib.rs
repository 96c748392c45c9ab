//! What others store of a control-flow trace, to compare with.
