//! A printed number is explained as a whole, in each radix and of 128 bits.

use crate::common::Sandbox;

const SOURCE: &str = "\
#[inline(never)]
fn made(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn main() {
    let n = made(std::env::args().count() as u64);
    println!(\"{n:x}\");
    println!(\"{:o}\", n >> 20);
    println!(\"{}\", u128::from(n) * u128::from(n));
    println!(\"{}\", n % 1000);
}
";

#[test]
fn whole_numbers_are_explained_in_each_radix() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    let printed = sandbox.run("record --lens full -o app.aft app.wasm").stdout;
    let lines = Vec::from_iter(printed.lines());
    let n = u64::from_str_radix(lines[0], 16).unwrap();
    let signed = |value: u64| (value as i64).to_string();
    let whole = (u128::from(n) * u128::from(n)).to_string();
    let values = [
        signed(n),
        signed(n >> 20),
        format!("{whole} (128 bits"),
        signed(n % 1000),
    ];
    for (number, value) in (1..).zip(values) {
        // Any digit stands for the number.
        for column in [1, 2] {
            let told = sandbox.ok(&format!("why app.aft --stdout line:{number}:{column}"));
            let first = told.stdout.lines().next().unwrap();
            assert!(
                first.starts_with(value.as_str()),
                "{value}\n{}",
                told.stdout
            );
            let line = lines[number - 1];
            assert!(first.contains(&format!("printed as \"{line}\"")), "{first}");
        }
    }
}
