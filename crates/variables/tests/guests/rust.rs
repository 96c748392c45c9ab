// A guest for tests/it/compilers.rs, which reads these variables.
use std::hint::black_box;

#[repr(i8)]
#[derive(Clone, Copy)]
pub enum Level {
    Low = -3,
    High = 7,
}

pub enum Shape {
    Circle(u32),
    Rect { w: u32, h: u32 },
}

pub struct Person {
    pub age: i32,
    pub name: &'static str,
    pub next: Option<&'static u8>,
    pub wide: i128,
}

mod state {
    pub static TABLE: [u16; 4] = [1, 2, 3, 4];
    pub static PERSON: super::Person = super::Person { age: -3, name: "héllo", next: None, wide: -5 };
    pub static SHAPE: super::Shape = super::Shape::Rect { w: 6, h: 7 };
    pub static MAYBE: Option<bool> = Some(true);
    pub static PAIR: (u8, char) = (1, 'x');
    pub static WORDS: &[&str] = &["one", "two\n\"\u{1}"];
    pub static NESTED: Option<Option<super::Level>> = Some(Some(super::Level::Low));
    pub static EMPTY: Vec<u16> = Vec::new();
    pub static NOTHING: () = ();
}

#[inline(never)]
#[no_mangle]
pub extern "C" fn area(shape: &Shape, factor: u32) -> u32 {
    let found = match shape {
        Shape::Circle(radius) => radius * 3,
        Shape::Rect { w, h } => w * h,
    };
    found * factor
}

fn main() {
    black_box((&state::TABLE, &state::PERSON, &state::MAYBE, &state::PAIR));
    black_box((&state::WORDS, &state::NESTED, &state::EMPTY, &state::NOTHING, Level::High));
    std::process::exit(area(black_box(&state::SHAPE), 2) as i32 & 1);
}
