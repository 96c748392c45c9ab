//! Variables that hide others, writes in callers, a deep call stack, a line with many executions.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

static TOTAL: AtomicU32 = AtomicU32::new(5);

fn work(x: u32, n: &mut u32) -> u32 {
    let mut sum = x;
    for i in 0..4 {
        let x = i * 10;
        if x > 15 {
            let x = 777 + i;
            sum += x;
        }
        sum += x;
        *n += 1;
    }
    TOTAL.fetch_add(sum, Ordering::Relaxed);
    sum
}

fn deep(n: u32) -> u32 {
    if n == 0 { 0 } else { 1 + deep(n - 1) }
}

fn main() {
    let mut n = 4;
    let result = work(3, &mut n);
    let mut sum: u32 = deep(300);
    let mut i: u32 = 0;
    while i < 120_000 {
        sum = sum.wrapping_mul(31) ^ i;
        i += 1;
    }
    println!(
        "{result} {n} {} {}",
        black_box(sum),
        TOTAL.load(Ordering::Relaxed)
    );
    if n > 1000 {
        println!("{n}"); // a line that never runs, and that is so long that a button at the end of the pane would cover the end of its text
    }
}
