//! Lists every vector operator and its computation.

use std::ops::Add;

use wasmparser::{Operator, ValType};

use super::lanes::{
    average, bits, canonical, compare, concatenate, dot_of_four, fused, high, low, pairs, products,
    q15_product, replace, saturate, select, shuffle, swizzle, zip,
};
use super::operand::{
    F32x4, F64x2, I8x16, I16x8, I32x4, I64x2, Operand, U8x16, U16x8, U32x4, U64x2,
};
use super::{Immediate, Kind};
use crate::float::Float;

vectors! {
    I8x16Shuffle { lanes } "i8x16.shuffle" (a: U8x16, b: U8x16) -> U8x16 = shuffle(a, b, lanes);
    I8x16ExtractLaneS { lane } "i8x16.extract_lane_s" (a: I8x16) -> i32 = a[lane % 16].into();
    I8x16ExtractLaneU { lane } "i8x16.extract_lane_u" (a: U8x16) -> u32 = a[lane % 16].into();
    I8x16ReplaceLane { lane } "i8x16.replace_lane" (a: U8x16, b: u32) -> U8x16 = replace(a, lane, b as u8);
    I16x8ExtractLaneS { lane } "i16x8.extract_lane_s" (a: I16x8) -> i32 = a[lane % 8].into();
    I16x8ExtractLaneU { lane } "i16x8.extract_lane_u" (a: U16x8) -> u32 = a[lane % 8].into();
    I16x8ReplaceLane { lane } "i16x8.replace_lane" (a: U16x8, b: u32) -> U16x8 = replace(a, lane, b as u16);
    I32x4ExtractLane { lane } "i32x4.extract_lane" (a: U32x4) -> u32 = a[lane % 4];
    I32x4ReplaceLane { lane } "i32x4.replace_lane" (a: U32x4, b: u32) -> U32x4 = replace(a, lane, b);
    I64x2ExtractLane { lane } "i64x2.extract_lane" (a: U64x2) -> u64 = a[lane % 2];
    I64x2ReplaceLane { lane } "i64x2.replace_lane" (a: U64x2, b: u64) -> U64x2 = replace(a, lane, b);
    F32x4ExtractLane { lane } "f32x4.extract_lane" (a: F32x4) -> f32 = a[lane % 4];
    F32x4ReplaceLane { lane } "f32x4.replace_lane" (a: F32x4, b: f32) -> F32x4 = replace(a, lane, b);
    F64x2ExtractLane { lane } "f64x2.extract_lane" (a: F64x2) -> f64 = a[lane % 2];
    F64x2ReplaceLane { lane } "f64x2.replace_lane" (a: F64x2, b: f64) -> F64x2 = replace(a, lane, b);
    I8x16Swizzle "i8x16.swizzle" (a: U8x16, b: U8x16) -> U8x16 = swizzle(a, b);
    I8x16Splat "i8x16.splat" (a: u32) -> U8x16 = [a as u8; 16];
    I16x8Splat "i16x8.splat" (a: u32) -> U16x8 = [a as u16; 8];
    I32x4Splat "i32x4.splat" (a: u32) -> U32x4 = [a; 4];
    I64x2Splat "i64x2.splat" (a: u64) -> U64x2 = [a; 2];
    F32x4Splat "f32x4.splat" (a: f32) -> F32x4 = [a; 4];
    F64x2Splat "f64x2.splat" (a: f64) -> F64x2 = [a; 2];

    I8x16Eq "i8x16.eq" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a == b);
    I8x16Ne "i8x16.ne" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a != b);
    I8x16LtS "i8x16.lt_s" (a: I8x16, b: I8x16) -> U8x16 = compare(a, b, |a, b| a < b);
    I8x16LtU "i8x16.lt_u" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a < b);
    I8x16GtS "i8x16.gt_s" (a: I8x16, b: I8x16) -> U8x16 = compare(a, b, |a, b| a > b);
    I8x16GtU "i8x16.gt_u" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a > b);
    I8x16LeS "i8x16.le_s" (a: I8x16, b: I8x16) -> U8x16 = compare(a, b, |a, b| a <= b);
    I8x16LeU "i8x16.le_u" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a <= b);
    I8x16GeS "i8x16.ge_s" (a: I8x16, b: I8x16) -> U8x16 = compare(a, b, |a, b| a >= b);
    I8x16GeU "i8x16.ge_u" (a: U8x16, b: U8x16) -> U8x16 = compare(a, b, |a, b| a >= b);

    I16x8Eq "i16x8.eq" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a == b);
    I16x8Ne "i16x8.ne" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a != b);
    I16x8LtS "i16x8.lt_s" (a: I16x8, b: I16x8) -> U16x8 = compare(a, b, |a, b| a < b);
    I16x8LtU "i16x8.lt_u" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a < b);
    I16x8GtS "i16x8.gt_s" (a: I16x8, b: I16x8) -> U16x8 = compare(a, b, |a, b| a > b);
    I16x8GtU "i16x8.gt_u" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a > b);
    I16x8LeS "i16x8.le_s" (a: I16x8, b: I16x8) -> U16x8 = compare(a, b, |a, b| a <= b);
    I16x8LeU "i16x8.le_u" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a <= b);
    I16x8GeS "i16x8.ge_s" (a: I16x8, b: I16x8) -> U16x8 = compare(a, b, |a, b| a >= b);
    I16x8GeU "i16x8.ge_u" (a: U16x8, b: U16x8) -> U16x8 = compare(a, b, |a, b| a >= b);

    I32x4Eq "i32x4.eq" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a == b);
    I32x4Ne "i32x4.ne" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a != b);
    I32x4LtS "i32x4.lt_s" (a: I32x4, b: I32x4) -> U32x4 = compare(a, b, |a, b| a < b);
    I32x4LtU "i32x4.lt_u" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a < b);
    I32x4GtS "i32x4.gt_s" (a: I32x4, b: I32x4) -> U32x4 = compare(a, b, |a, b| a > b);
    I32x4GtU "i32x4.gt_u" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a > b);
    I32x4LeS "i32x4.le_s" (a: I32x4, b: I32x4) -> U32x4 = compare(a, b, |a, b| a <= b);
    I32x4LeU "i32x4.le_u" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a <= b);
    I32x4GeS "i32x4.ge_s" (a: I32x4, b: I32x4) -> U32x4 = compare(a, b, |a, b| a >= b);
    I32x4GeU "i32x4.ge_u" (a: U32x4, b: U32x4) -> U32x4 = compare(a, b, |a, b| a >= b);

    I64x2Eq "i64x2.eq" (a: U64x2, b: U64x2) -> U64x2 = compare(a, b, |a, b| a == b);
    I64x2Ne "i64x2.ne" (a: U64x2, b: U64x2) -> U64x2 = compare(a, b, |a, b| a != b);
    I64x2LtS "i64x2.lt_s" (a: I64x2, b: I64x2) -> U64x2 = compare(a, b, |a, b| a < b);
    I64x2GtS "i64x2.gt_s" (a: I64x2, b: I64x2) -> U64x2 = compare(a, b, |a, b| a > b);
    I64x2LeS "i64x2.le_s" (a: I64x2, b: I64x2) -> U64x2 = compare(a, b, |a, b| a <= b);
    I64x2GeS "i64x2.ge_s" (a: I64x2, b: I64x2) -> U64x2 = compare(a, b, |a, b| a >= b);

    F32x4Eq "f32x4.eq" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a == b);
    F32x4Ne "f32x4.ne" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a != b);
    F32x4Lt "f32x4.lt" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a < b);
    F32x4Gt "f32x4.gt" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a > b);
    F32x4Le "f32x4.le" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a <= b);
    F32x4Ge "f32x4.ge" (a: F32x4, b: F32x4) -> U32x4 = compare(a, b, |a, b| a >= b);

    F64x2Eq "f64x2.eq" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a == b);
    F64x2Ne "f64x2.ne" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a != b);
    F64x2Lt "f64x2.lt" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a < b);
    F64x2Gt "f64x2.gt" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a > b);
    F64x2Le "f64x2.le" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a <= b);
    F64x2Ge "f64x2.ge" (a: F64x2, b: F64x2) -> U64x2 = compare(a, b, |a, b| a >= b);

    V128Not "v128.not" (a: u128) -> u128 = !a;
    V128And "v128.and" (a: u128, b: u128) -> u128 = a & b;
    V128AndNot "v128.andnot" (a: u128, b: u128) -> u128 = a & !b;
    V128Or "v128.or" (a: u128, b: u128) -> u128 = a | b;
    V128Xor "v128.xor" (a: u128, b: u128) -> u128 = a ^ b;
    V128Bitselect "v128.bitselect" (a: u128, b: u128, c: u128) -> u128 = select(a, b, c);
    V128AnyTrue "v128.any_true" (a: u128) -> bool = a != 0;

    I8x16Abs "i8x16.abs" (a: I8x16) -> I8x16 = a.map(i8::wrapping_abs);
    I8x16Neg "i8x16.neg" (a: U8x16) -> U8x16 = a.map(u8::wrapping_neg);
    I8x16Popcnt "i8x16.popcnt" (a: U8x16) -> U8x16 = a.map(|a| a.count_ones() as u8);
    I8x16AllTrue "i8x16.all_true" (a: U8x16) -> bool = a.iter().all(|&a| a != 0);
    I8x16Bitmask "i8x16.bitmask" (a: I8x16) -> u32 = bits(a, |a| a < 0);
    I8x16NarrowI16x8S "i8x16.narrow_i16x8_s" (a: I16x8, b: I16x8) -> I8x16 = concatenate(a, b).map(saturate!(i16, i8));
    I8x16NarrowI16x8U "i8x16.narrow_i16x8_u" (a: I16x8, b: I16x8) -> U8x16 = concatenate(a, b).map(saturate!(i16, u8));
    I8x16Shl "i8x16.shl" (a: U8x16, b: u32) -> U8x16 = a.map(|a| a.wrapping_shl(b));
    I8x16ShrS "i8x16.shr_s" (a: I8x16, b: u32) -> I8x16 = a.map(|a| a.wrapping_shr(b));
    I8x16ShrU "i8x16.shr_u" (a: U8x16, b: u32) -> U8x16 = a.map(|a| a.wrapping_shr(b));
    I8x16Add "i8x16.add" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, u8::wrapping_add);
    I8x16AddSatS "i8x16.add_sat_s" (a: I8x16, b: I8x16) -> I8x16 = zip(a, b, i8::saturating_add);
    I8x16AddSatU "i8x16.add_sat_u" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, u8::saturating_add);
    I8x16Sub "i8x16.sub" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, u8::wrapping_sub);
    I8x16SubSatS "i8x16.sub_sat_s" (a: I8x16, b: I8x16) -> I8x16 = zip(a, b, i8::saturating_sub);
    I8x16SubSatU "i8x16.sub_sat_u" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, u8::saturating_sub);
    I8x16MinS "i8x16.min_s" (a: I8x16, b: I8x16) -> I8x16 = zip(a, b, Ord::min);
    I8x16MinU "i8x16.min_u" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, Ord::min);
    I8x16MaxS "i8x16.max_s" (a: I8x16, b: I8x16) -> I8x16 = zip(a, b, Ord::max);
    I8x16MaxU "i8x16.max_u" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, Ord::max);
    I8x16AvgrU "i8x16.avgr_u" (a: U8x16, b: U8x16) -> U8x16 = zip(a, b, average!(u8, u16));

    I16x8ExtAddPairwiseI8x16S "i16x8.extadd_pairwise_i8x16_s" (a: I8x16) -> I16x8 = pairs(a.map(i16::from), Add::add);
    I16x8ExtAddPairwiseI8x16U "i16x8.extadd_pairwise_i8x16_u" (a: U8x16) -> U16x8 = pairs(a.map(u16::from), Add::add);
    I16x8Abs "i16x8.abs" (a: I16x8) -> I16x8 = a.map(i16::wrapping_abs);
    I16x8Neg "i16x8.neg" (a: U16x8) -> U16x8 = a.map(u16::wrapping_neg);
    I16x8Q15MulrSatS "i16x8.q15mulr_sat_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, q15_product);
    I16x8AllTrue "i16x8.all_true" (a: U16x8) -> bool = a.iter().all(|&a| a != 0);
    I16x8Bitmask "i16x8.bitmask" (a: I16x8) -> u32 = bits(a, |a| a < 0);
    I16x8NarrowI32x4S "i16x8.narrow_i32x4_s" (a: I32x4, b: I32x4) -> I16x8 = concatenate(a, b).map(saturate!(i32, i16));
    I16x8NarrowI32x4U "i16x8.narrow_i32x4_u" (a: I32x4, b: I32x4) -> U16x8 = concatenate(a, b).map(saturate!(i32, u16));
    I16x8ExtendLowI8x16S "i16x8.extend_low_i8x16_s" (a: I8x16) -> I16x8 = low(a).map(i16::from);
    I16x8ExtendHighI8x16S "i16x8.extend_high_i8x16_s" (a: I8x16) -> I16x8 = high(a).map(i16::from);
    I16x8ExtendLowI8x16U "i16x8.extend_low_i8x16_u" (a: U8x16) -> U16x8 = low(a).map(u16::from);
    I16x8ExtendHighI8x16U "i16x8.extend_high_i8x16_u" (a: U8x16) -> U16x8 = high(a).map(u16::from);
    I16x8Shl "i16x8.shl" (a: U16x8, b: u32) -> U16x8 = a.map(|a| a.wrapping_shl(b));
    I16x8ShrS "i16x8.shr_s" (a: I16x8, b: u32) -> I16x8 = a.map(|a| a.wrapping_shr(b));
    I16x8ShrU "i16x8.shr_u" (a: U16x8, b: u32) -> U16x8 = a.map(|a| a.wrapping_shr(b));
    I16x8Add "i16x8.add" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, u16::wrapping_add);
    I16x8AddSatS "i16x8.add_sat_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, i16::saturating_add);
    I16x8AddSatU "i16x8.add_sat_u" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, u16::saturating_add);
    I16x8Sub "i16x8.sub" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, u16::wrapping_sub);
    I16x8SubSatS "i16x8.sub_sat_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, i16::saturating_sub);
    I16x8SubSatU "i16x8.sub_sat_u" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, u16::saturating_sub);
    I16x8Mul "i16x8.mul" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, u16::wrapping_mul);
    I16x8MinS "i16x8.min_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, Ord::min);
    I16x8MinU "i16x8.min_u" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, Ord::min);
    I16x8MaxS "i16x8.max_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, Ord::max);
    I16x8MaxU "i16x8.max_u" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, Ord::max);
    I16x8AvgrU "i16x8.avgr_u" (a: U16x8, b: U16x8) -> U16x8 = zip(a, b, average!(u16, u32));
    I16x8ExtMulLowI8x16S "i16x8.extmul_low_i8x16_s" (a: I8x16, b: I8x16) -> I16x8 = products(low(a), low(b), i16::from);
    I16x8ExtMulHighI8x16S "i16x8.extmul_high_i8x16_s" (a: I8x16, b: I8x16) -> I16x8 = products(high(a), high(b), i16::from);
    I16x8ExtMulLowI8x16U "i16x8.extmul_low_i8x16_u" (a: U8x16, b: U8x16) -> U16x8 = products(low(a), low(b), u16::from);
    I16x8ExtMulHighI8x16U "i16x8.extmul_high_i8x16_u" (a: U8x16, b: U8x16) -> U16x8 = products(high(a), high(b), u16::from);

    I32x4ExtAddPairwiseI16x8S "i32x4.extadd_pairwise_i16x8_s" (a: I16x8) -> I32x4 = pairs(a.map(i32::from), Add::add);
    I32x4ExtAddPairwiseI16x8U "i32x4.extadd_pairwise_i16x8_u" (a: U16x8) -> U32x4 = pairs(a.map(u32::from), Add::add);
    I32x4Abs "i32x4.abs" (a: I32x4) -> I32x4 = a.map(i32::wrapping_abs);
    I32x4Neg "i32x4.neg" (a: U32x4) -> U32x4 = a.map(u32::wrapping_neg);
    I32x4AllTrue "i32x4.all_true" (a: U32x4) -> bool = a.iter().all(|&a| a != 0);
    I32x4Bitmask "i32x4.bitmask" (a: I32x4) -> u32 = bits(a, |a| a < 0);
    I32x4ExtendLowI16x8S "i32x4.extend_low_i16x8_s" (a: I16x8) -> I32x4 = low(a).map(i32::from);
    I32x4ExtendHighI16x8S "i32x4.extend_high_i16x8_s" (a: I16x8) -> I32x4 = high(a).map(i32::from);
    I32x4ExtendLowI16x8U "i32x4.extend_low_i16x8_u" (a: U16x8) -> U32x4 = low(a).map(u32::from);
    I32x4ExtendHighI16x8U "i32x4.extend_high_i16x8_u" (a: U16x8) -> U32x4 = high(a).map(u32::from);
    I32x4Shl "i32x4.shl" (a: U32x4, b: u32) -> U32x4 = a.map(|a| a.wrapping_shl(b));
    I32x4ShrS "i32x4.shr_s" (a: I32x4, b: u32) -> I32x4 = a.map(|a| a.wrapping_shr(b));
    I32x4ShrU "i32x4.shr_u" (a: U32x4, b: u32) -> U32x4 = a.map(|a| a.wrapping_shr(b));
    I32x4Add "i32x4.add" (a: U32x4, b: U32x4) -> U32x4 = zip(a, b, u32::wrapping_add);
    I32x4Sub "i32x4.sub" (a: U32x4, b: U32x4) -> U32x4 = zip(a, b, u32::wrapping_sub);
    I32x4Mul "i32x4.mul" (a: U32x4, b: U32x4) -> U32x4 = zip(a, b, u32::wrapping_mul);
    I32x4MinS "i32x4.min_s" (a: I32x4, b: I32x4) -> I32x4 = zip(a, b, Ord::min);
    I32x4MinU "i32x4.min_u" (a: U32x4, b: U32x4) -> U32x4 = zip(a, b, Ord::min);
    I32x4MaxS "i32x4.max_s" (a: I32x4, b: I32x4) -> I32x4 = zip(a, b, Ord::max);
    I32x4MaxU "i32x4.max_u" (a: U32x4, b: U32x4) -> U32x4 = zip(a, b, Ord::max);
    I32x4DotI16x8S "i32x4.dot_i16x8_s" (a: I16x8, b: I16x8) -> I32x4 = pairs(products(a, b, i32::from), i32::wrapping_add);
    I32x4ExtMulLowI16x8S "i32x4.extmul_low_i16x8_s" (a: I16x8, b: I16x8) -> I32x4 = products(low(a), low(b), i32::from);
    I32x4ExtMulHighI16x8S "i32x4.extmul_high_i16x8_s" (a: I16x8, b: I16x8) -> I32x4 = products(high(a), high(b), i32::from);
    I32x4ExtMulLowI16x8U "i32x4.extmul_low_i16x8_u" (a: U16x8, b: U16x8) -> U32x4 = products(low(a), low(b), u32::from);
    I32x4ExtMulHighI16x8U "i32x4.extmul_high_i16x8_u" (a: U16x8, b: U16x8) -> U32x4 = products(high(a), high(b), u32::from);

    I64x2Abs "i64x2.abs" (a: I64x2) -> I64x2 = a.map(i64::wrapping_abs);
    I64x2Neg "i64x2.neg" (a: U64x2) -> U64x2 = a.map(u64::wrapping_neg);
    I64x2AllTrue "i64x2.all_true" (a: U64x2) -> bool = a.iter().all(|&a| a != 0);
    I64x2Bitmask "i64x2.bitmask" (a: I64x2) -> u32 = bits(a, |a| a < 0);
    I64x2ExtendLowI32x4S "i64x2.extend_low_i32x4_s" (a: I32x4) -> I64x2 = low(a).map(i64::from);
    I64x2ExtendHighI32x4S "i64x2.extend_high_i32x4_s" (a: I32x4) -> I64x2 = high(a).map(i64::from);
    I64x2ExtendLowI32x4U "i64x2.extend_low_i32x4_u" (a: U32x4) -> U64x2 = low(a).map(u64::from);
    I64x2ExtendHighI32x4U "i64x2.extend_high_i32x4_u" (a: U32x4) -> U64x2 = high(a).map(u64::from);
    I64x2Shl "i64x2.shl" (a: U64x2, b: u32) -> U64x2 = a.map(|a| a.wrapping_shl(b));
    I64x2ShrS "i64x2.shr_s" (a: I64x2, b: u32) -> I64x2 = a.map(|a| a.wrapping_shr(b));
    I64x2ShrU "i64x2.shr_u" (a: U64x2, b: u32) -> U64x2 = a.map(|a| a.wrapping_shr(b));
    I64x2Add "i64x2.add" (a: U64x2, b: U64x2) -> U64x2 = zip(a, b, u64::wrapping_add);
    I64x2Sub "i64x2.sub" (a: U64x2, b: U64x2) -> U64x2 = zip(a, b, u64::wrapping_sub);
    I64x2Mul "i64x2.mul" (a: U64x2, b: U64x2) -> U64x2 = zip(a, b, u64::wrapping_mul);
    I64x2ExtMulLowI32x4S "i64x2.extmul_low_i32x4_s" (a: I32x4, b: I32x4) -> I64x2 = products(low(a), low(b), i64::from);
    I64x2ExtMulHighI32x4S "i64x2.extmul_high_i32x4_s" (a: I32x4, b: I32x4) -> I64x2 = products(high(a), high(b), i64::from);
    I64x2ExtMulLowI32x4U "i64x2.extmul_low_i32x4_u" (a: U32x4, b: U32x4) -> U64x2 = products(low(a), low(b), u64::from);
    I64x2ExtMulHighI32x4U "i64x2.extmul_high_i32x4_u" (a: U32x4, b: U32x4) -> U64x2 = products(high(a), high(b), u64::from);

    F32x4Ceil "f32x4.ceil" (a: F32x4) -> F32x4 = canonical(a.map(f32::ceil));
    F32x4Floor "f32x4.floor" (a: F32x4) -> F32x4 = canonical(a.map(f32::floor));
    F32x4Trunc "f32x4.trunc" (a: F32x4) -> F32x4 = canonical(a.map(f32::trunc));
    F32x4Nearest "f32x4.nearest" (a: F32x4) -> F32x4 = canonical(a.map(f32::round_ties_even));
    F32x4Abs "f32x4.abs" (a: F32x4) -> F32x4 = a.map(f32::abs);
    F32x4Neg "f32x4.neg" (a: F32x4) -> F32x4 = a.map(|a| -a);
    F32x4Sqrt "f32x4.sqrt" (a: F32x4) -> F32x4 = canonical(a.map(f32::sqrt));
    F32x4Add "f32x4.add" (a: F32x4, b: F32x4) -> F32x4 = canonical(zip(a, b, |a, b| a + b));
    F32x4Sub "f32x4.sub" (a: F32x4, b: F32x4) -> F32x4 = canonical(zip(a, b, |a, b| a - b));
    F32x4Mul "f32x4.mul" (a: F32x4, b: F32x4) -> F32x4 = canonical(zip(a, b, |a, b| a * b));
    F32x4Div "f32x4.div" (a: F32x4, b: F32x4) -> F32x4 = canonical(zip(a, b, |a, b| a / b));
    F32x4Min "f32x4.min" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::min_or_nan);
    F32x4Max "f32x4.max" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::max_or_nan);
    F32x4PMin "f32x4.pmin" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::pseudo_min);
    F32x4PMax "f32x4.pmax" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::pseudo_max);

    F64x2Ceil "f64x2.ceil" (a: F64x2) -> F64x2 = canonical(a.map(f64::ceil));
    F64x2Floor "f64x2.floor" (a: F64x2) -> F64x2 = canonical(a.map(f64::floor));
    F64x2Trunc "f64x2.trunc" (a: F64x2) -> F64x2 = canonical(a.map(f64::trunc));
    F64x2Nearest "f64x2.nearest" (a: F64x2) -> F64x2 = canonical(a.map(f64::round_ties_even));
    F64x2Abs "f64x2.abs" (a: F64x2) -> F64x2 = a.map(f64::abs);
    F64x2Neg "f64x2.neg" (a: F64x2) -> F64x2 = a.map(|a| -a);
    F64x2Sqrt "f64x2.sqrt" (a: F64x2) -> F64x2 = canonical(a.map(f64::sqrt));
    F64x2Add "f64x2.add" (a: F64x2, b: F64x2) -> F64x2 = canonical(zip(a, b, |a, b| a + b));
    F64x2Sub "f64x2.sub" (a: F64x2, b: F64x2) -> F64x2 = canonical(zip(a, b, |a, b| a - b));
    F64x2Mul "f64x2.mul" (a: F64x2, b: F64x2) -> F64x2 = canonical(zip(a, b, |a, b| a * b));
    F64x2Div "f64x2.div" (a: F64x2, b: F64x2) -> F64x2 = canonical(zip(a, b, |a, b| a / b));
    F64x2Min "f64x2.min" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::min_or_nan);
    F64x2Max "f64x2.max" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::max_or_nan);
    F64x2PMin "f64x2.pmin" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::pseudo_min);
    F64x2PMax "f64x2.pmax" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::pseudo_max);

    I32x4TruncSatF32x4S "i32x4.trunc_sat_f32x4_s" (a: F32x4) -> I32x4 = a.map(|a| a as i32);
    I32x4TruncSatF32x4U "i32x4.trunc_sat_f32x4_u" (a: F32x4) -> U32x4 = a.map(|a| a as u32);
    F32x4ConvertI32x4S "f32x4.convert_i32x4_s" (a: I32x4) -> F32x4 = a.map(|a| a as f32);
    F32x4ConvertI32x4U "f32x4.convert_i32x4_u" (a: U32x4) -> F32x4 = a.map(|a| a as f32);
    I32x4TruncSatF64x2SZero "i32x4.trunc_sat_f64x2_s_zero" (a: F64x2) -> I32x4 = concatenate(a.map(|a| a as i32), [0; 2]);
    I32x4TruncSatF64x2UZero "i32x4.trunc_sat_f64x2_u_zero" (a: F64x2) -> U32x4 = concatenate(a.map(|a| a as u32), [0; 2]);
    F64x2ConvertLowI32x4S "f64x2.convert_low_i32x4_s" (a: I32x4) -> F64x2 = low(a).map(f64::from);
    F64x2ConvertLowI32x4U "f64x2.convert_low_i32x4_u" (a: U32x4) -> F64x2 = low(a).map(f64::from);
    F32x4DemoteF64x2Zero "f32x4.demote_f64x2_zero" (a: F64x2) -> F32x4 = concatenate(canonical(a.map(|a| a as f32)), [0.0; 2]);
    F64x2PromoteLowF32x4 "f64x2.promote_low_f32x4" (a: F32x4) -> F64x2 = canonical(low(a).map(f64::from));

    I8x16RelaxedSwizzle "i8x16.relaxed_swizzle" (a: U8x16, b: U8x16) -> U8x16 = swizzle(a, b);
    I32x4RelaxedTruncF32x4S "i32x4.relaxed_trunc_f32x4_s" (a: F32x4) -> I32x4 = a.map(|a| a as i32);
    I32x4RelaxedTruncF32x4U "i32x4.relaxed_trunc_f32x4_u" (a: F32x4) -> U32x4 = a.map(|a| a as u32);
    I32x4RelaxedTruncF64x2SZero "i32x4.relaxed_trunc_f64x2_s_zero" (a: F64x2) -> I32x4 = concatenate(a.map(|a| a as i32), [0; 2]);
    I32x4RelaxedTruncF64x2UZero "i32x4.relaxed_trunc_f64x2_u_zero" (a: F64x2) -> U32x4 = concatenate(a.map(|a| a as u32), [0; 2]);
    F32x4RelaxedMadd "f32x4.relaxed_madd" (a: F32x4, b: F32x4, c: F32x4) -> F32x4 = fused(a, b, c);
    F32x4RelaxedNmadd "f32x4.relaxed_nmadd" (a: F32x4, b: F32x4, c: F32x4) -> F32x4 = fused(a.map(|a| -a), b, c);
    F64x2RelaxedMadd "f64x2.relaxed_madd" (a: F64x2, b: F64x2, c: F64x2) -> F64x2 = fused(a, b, c);
    F64x2RelaxedNmadd "f64x2.relaxed_nmadd" (a: F64x2, b: F64x2, c: F64x2) -> F64x2 = fused(a.map(|a| -a), b, c);
    I8x16RelaxedLaneselect "i8x16.relaxed_laneselect" (a: u128, b: u128, c: u128) -> u128 = select(a, b, c);
    I16x8RelaxedLaneselect "i16x8.relaxed_laneselect" (a: u128, b: u128, c: u128) -> u128 = select(a, b, c);
    I32x4RelaxedLaneselect "i32x4.relaxed_laneselect" (a: u128, b: u128, c: u128) -> u128 = select(a, b, c);
    I64x2RelaxedLaneselect "i64x2.relaxed_laneselect" (a: u128, b: u128, c: u128) -> u128 = select(a, b, c);
    F32x4RelaxedMin "f32x4.relaxed_min" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::min_or_nan);
    F32x4RelaxedMax "f32x4.relaxed_max" (a: F32x4, b: F32x4) -> F32x4 = zip(a, b, Float::max_or_nan);
    F64x2RelaxedMin "f64x2.relaxed_min" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::min_or_nan);
    F64x2RelaxedMax "f64x2.relaxed_max" (a: F64x2, b: F64x2) -> F64x2 = zip(a, b, Float::max_or_nan);
    I16x8RelaxedQ15mulrS "i16x8.relaxed_q15mulr_s" (a: I16x8, b: I16x8) -> I16x8 = zip(a, b, q15_product);
    I16x8RelaxedDotI8x16I7x16S "i16x8.relaxed_dot_i8x16_i7x16_s" (a: I8x16, b: I8x16) -> I16x8 = pairs(products(a, b, i16::from), i16::wrapping_add);
    I32x4RelaxedDotI8x16I7x16AddS "i32x4.relaxed_dot_i8x16_i7x16_add_s" (a: I8x16, b: I8x16, c: I32x4) -> I32x4 = zip(dot_of_four(a, b), c, i32::wrapping_add);
}
