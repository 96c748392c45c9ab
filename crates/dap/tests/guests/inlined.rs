//! A program with lines whose calls are all inlined.

static mut TOTAL: i32 = 0;

#[inline(always)]
fn add(value: i32) {
    unsafe { (&raw mut TOTAL).write_volatile(value) }
}

#[inline(always)]
fn both(value: i32) {
    add(value); // first
    add(value); // second
}

fn main() {
    let count = std::env::args().count() as i32;
    add(count);
    both(count);
    println!("{}", unsafe { (&raw const TOTAL).read_volatile() });
}
