use wasmparser::ValType;

/// A Rust type for a scalar WebAssembly type, and its zero-extended form in 64 bits. Conversion
/// from this form ignores bits above the type's width.
pub(crate) trait Value {
    const TYPE: ValType;

    fn from_u64(bits: u64) -> Self;
    fn into_u64(self) -> u64;
}

macro_rules! values {
    ($($rust:ty => $wasm:ident, $bits:ident => $read:expr, $value:ident => $write:expr;)*) => {
        $(impl Value for $rust {
            const TYPE: ValType = ValType::$wasm;

            #[inline(always)]
            fn from_u64($bits: u64) -> Self {
                $read
            }

            #[inline(always)]
            fn into_u64(self) -> u64 {
                let $value = self;
                $write
            }
        })*
    };
}

values! {
    u32 => I32, bits => bits as u32, value => u64::from(value);
    i32 => I32, bits => bits as i32, value => u64::from(value.cast_unsigned());
    bool => I32, bits => bits as u32 != 0, value => u64::from(value);
    u64 => I64, bits => bits, value => value;
    i64 => I64, bits => bits.cast_signed(), value => value.cast_unsigned();
    f32 => F32, bits => f32::from_bits(bits as u32), value => u64::from(value.to_bits());
    f64 => F64, bits => f64::from_bits(bits), value => value.to_bits();
}
