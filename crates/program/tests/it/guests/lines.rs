// A guest for tests/it/guest.rs, which depends on these line numbers. Keep them.
use std::hint::black_box;

#[inline(always)]
fn innermost(x: u32) -> u32 {
    (x << 3) ^ (x >> 5) // line 6
}

#[inline(always)]
fn middle(x: u32) -> u32 {
    innermost(x ^ 0x55) + 1 // line 11
}

#[inline(never)]
#[no_mangle]
pub extern "C" fn exported(x: u32) -> u32 {
    middle(black_box(x)) ^ x // line 17
}

mod shapes {
    pub struct Circle(pub u32);
    impl Circle {
        #[inline(never)]
        pub fn area(&self) -> u32 {
            self.0 * self.0 * 3 // line 25
        }
    }
}

fn main() {
    let circle = shapes::Circle(black_box(5));
    std::process::exit((exported(circle.area()) & 1) as i32); // line 32
}
