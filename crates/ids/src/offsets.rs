//! Byte offsets, one type per byte space.

use std::fmt;

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "0x{:x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(0x{:x})"), self.0)
            }
        }
    )*};
}

offsets! {
    /// A byte offset from the start of the original module.
    OrigOffset(u32);
    /// A byte offset from the start of the rewritten (instrumented) module.
    InstrOffset(u32);
    /// A byte offset from the start of a trace file.
    FileOffset(u64);
}
