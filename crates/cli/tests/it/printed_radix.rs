//! A printed number is explained as a whole, in each radix and with up to 128 bits.

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

/// Prints exact decimals, whose digits Rust makes by comparing and counting.
const FLOATS: &str = "\
fn main() {
    let x: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    println!(\"p {:.2}\", x * 2.0);
    println!(\"p {:.2}\", 0.25 - x);
    println!(\"p {:8.2}\", x * 16.0);
    println!(\"p {}\", x * 2.0);
    println!(\"p {}\", (x * 296.0) as u64);
    println!(\"p {}\", [\"1.50\"][x as usize / 7]);
    println!(\"p {:.1}\", (x / 25.0) as f32);
}
";

#[test]
fn floats_are_explained_however_they_are_printed() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", FLOATS);
    let words = "record --lens full -o app.aft app.wasm 6.25";
    let printed = sandbox.run(words).stdout;
    let lines = Vec::from_iter(printed.lines());
    let whole = |line: &str| {
        line.trim_start_matches("p")
            .trim()
            .trim_end_matches('s')
            .to_owned()
    };
    let values = ["12.5", "-6.0", "100.0", "12.5"];
    for (line, (text, value)) in (1..).zip(lines.iter().zip(values)) {
        let told = sandbox.ok(&format!("why app.aft --stdout line:{line}"));
        let begin = format!("{value}, printed as {:?} in", whole(text));
        assert!(told.stdout.starts_with(&begin), "{begin}\n{}", told.stdout);
        // The explanation leads back to the program's argument.
        let from = "of argument 1 of the program";
        let words = Vec::from_iter(told.stdout.split_whitespace()).join(" ");
        assert!(words.contains(from), "{}", told.stdout);
    }
    // The program itself converted this number.
    let told = sandbox.ok("why app.aft --stdout line:5").stdout;
    assert!(told.starts_with("1850, printed as"), "{told}");
    // These digits are a text, and no number was printed.
    let told = sandbox.ok("why app.aft --stdout line:6").stdout;
    assert!(told.starts_with("byte "), "{told}");
    // The library computes an integer from the digits after the point, which is not the printed
    // number.
    let told = sandbox.ok("why app.aft --stdout line:7").stdout;
    assert!(!told.starts_with("2, printed"), "{told}");
}
