//! Conditions agree with awk's evaluation of the listed values.

use std::fmt::Write;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::{Sandbox, ran};

const SOURCE: &str = r#"
struct point { int x, y; } points[4];
void use(struct point *p, int b, unsigned c, double d) {}
int run(void)
{
    int a = 1, b = -3;
    unsigned c = 7;
    for (int i = 0; i < 300; i++) {
        a = a * 1103515245 + 12345;
        b = (a >> 16) % 100;
        c = c * 7 + i;
        double d = b / 4.0;
        struct point *p = &points[i % 4];
        p->x = b;
        p->y += i;
        use(p, b, c, d); // here
    }
    return a;
}
"#;

/// The expressions as we write them, and their names in awk.
const VARIABLES: [(&str, &str); 6] = [
    ("a", "a"),
    ("b", "b"),
    ("c", "c"),
    ("d", "d"),
    ("p->x", "x"),
    ("(*p).y", "y"),
];

/// A condition for both: in the one, names are as in the first of [`VARIABLES`], in the other as in
/// the second.
fn condition(random: &mut SplitMix64, depth: usize) -> [String; 2] {
    let operand = |random: &mut SplitMix64| -> [String; 2] {
        let (own, awk) = VARIABLES[random.below(VARIABLES.len())];
        let n = random.below(200) as i64 - 100;
        match random.below(4) {
            0 => [n.to_string(), n.to_string()],
            1 => [format!("{own} + {n}"), format!("{awk} + {n}")],
            2 => [format!("-{own} * 2"), format!("-{awk} * 2")],
            _ => [own.to_owned(), awk.to_owned()],
        }
    };
    if depth == 0 {
        let (left, right) = (operand(random), operand(random));
        let sign = ["<", "<=", ">", ">=", "==", "!="][random.below(6)];
        return [0, 1].map(|way| format!("{} {sign} {}", left[way], right[way]));
    }
    let (left, right) = (condition(random, depth - 1), condition(random, depth - 1));
    [0, 1].map(|way| match depth {
        1 => format!("{} && {}", left[way], right[way]),
        2 => format!("!({}) || {}", left[way], right[way]),
        _ => format!("({}) == ({})", left[way], right[way]),
    })
}

#[test]
fn conditions_hold_when_awk_says_so() {
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let source = sandbox.write("run.c", SOURCE);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[source], &link, &sandbox.path("run.wasm"));
    sandbox.ok("record --invoke run --lens full -o run.aft run.wasm");
    let here = SOURCE
        .lines()
        .position(|line| line.contains("// here"))
        .unwrap()
        + 1;
    let ask = |options: &[&str]| {
        let at = format!("run.c:{here}");
        let words = [
            "values", "run.aft", "--format", "json", "--limit", "1000", "--at", &at,
        ];
        let told = ran(&mut sandbox.command(words.iter().chain(options)));
        assert_eq!(told.code, Some(0), "{options:?} {told:?}");
        serde_json::from_str::<Value>(&told.stdout).unwrap()
    };
    let mut table = vec![String::new(); 300];
    for (own, _) in VARIABLES {
        let told = ask(&["--var", own]);
        let rows = told["instances"].as_array().unwrap();
        assert_eq!(rows.len(), table.len());
        for (row, line) in rows.iter().zip(&mut table) {
            write!(line, " {}", row["value"].as_str().unwrap()).unwrap();
        }
    }
    sandbox.write("table", table.join("\n") + "\n");
    let mut random = SplitMix64(7);
    let (mut held, mut not) = (0, 0);
    for round in 0..40 {
        let [own, awk] = condition(&mut random, round % 4);
        let names = VARIABLES
            .iter()
            .zip(1..)
            .map(|((_, name), column)| format!("{name} = ${column};"));
        let program = format!(
            "{{ {} if ({awk}) print NR }}",
            Vec::from_iter(names).join(" ")
        );
        let said = ran(sandbox.any("awk").args([&program, "table"]));
        assert_eq!(said.code, Some(0), "{program}: {said:?}");
        let expected = Vec::from_iter(said.stdout.lines().map(|line| line.parse::<u64>().unwrap()));
        let told = ask(&["--where", &own]);
        let rows = told["instances"].as_array().unwrap();
        let numbers = rows.iter().map(|row| row["number"].as_u64().unwrap());
        assert_eq!(Vec::from_iter(numbers), expected, "{own}");
        assert_eq!(told["unknown"], serde_json::json!([]));
        assert_eq!(told["holds"], expected.len());
        held += expected.len();
        not += 300 - expected.len();
        assert_eq!(ask(&["--where", &own, "--count"])["holds"], expected.len());
        for (option, one) in [("--first", expected.first()), ("--last", expected.last())] {
            let told = ask(&["--where", &own, option]);
            let number = told["instances"]
                .get(0)
                .map(|row| row["number"].as_u64().unwrap());
            assert_eq!(number.as_ref(), one, "{own} {option}");
        }
    }
    assert!(held > 1000 && not > 1000, "{held} {not}");
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where a=="),
        125,
        &["--where 'a=='", "at character 4"],
    );
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where 1<2"),
        125,
        &["names no variable"],
    );
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where nobody>2"),
        125,
        &["there is no variable nobody"],
    );
}
