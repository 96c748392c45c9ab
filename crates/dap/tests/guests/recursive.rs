use std::hint::black_box;

#[inline(never)]
fn mixed(depth: u32, seed: u64) -> u64 {
    let mut sum = seed;
    let mut round = 0;
    while round < 3 {
        sum = sum.wrapping_mul(31).wrapping_add(round);
        if depth > round as u32 {
            sum ^= mixed(depth - 1, sum);
        }
        round += black_box(1);
    }
    sum
}

fn main() {
    let mut all = 0;
    for seed in 1..4 {
        all ^= mixed(black_box(3), seed);
    }
    println!("{all}");
}
