//! Tests the answers of `memory` for a bare recording of a long run: the last writer of a byte,
//! even if it wrote long before, and the part that was not searched.

use serde_json::Value;

use crate::common::Sandbox;

/// A program that writes a word at its beginning and reads it at its end. In between, it writes the
/// adjacent word many times.
fn long(rounds: u64) -> String {
    format!(
        r#"(module (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    (i32.store (i32.const 4096) (i32.const 7))
    (loop $next
      (i32.store (i32.const 4100) (local.get $i))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {rounds}))))
    (drop (i32.load (i32.const 4096)))))"#
    )
}

#[test]
fn the_last_writer_is_known_and_what_was_not_searched_is_marked() {
    let sandbox = Sandbox::new();
    let words = "memory long.aft --address 4096..4103 --at 60%";
    // A busy machine takes few snapshots. The rest of a short run may then be searched as a whole.
    let lengths = [40_000_000, 160_000_000, 640_000_000, 2_000_000_000];
    let asked = lengths.into_iter().find_map(|rounds| {
        sandbox.write("long.wat", long(rounds));
        sandbox.ok("record --force -o long.aft long.wat");
        let text = sandbox.ok(words).stdout;
        text.contains("unknown: ").then_some((rounds, text))
    });
    let (rounds, text) = asked.expect("a run that is not searched as a whole");
    let lines = Vec::from_iter(text.lines().map(str::trim));
    let after = |head: &str| {
        let at = lines.iter().position(|line| line.starts_with(head));
        &lines[at.expect(head) + 1..][..3]
    };
    let [written, read, next] = after("0x1000..0x1003") else {
        unreachable!()
    };
    assert!(written.contains("t=1 "), "{text}");
    for next in [read, next] {
        assert!(next.contains("unknown: the run after t="), "{text}");
    }
    let [written, read, next] = after("0x1004..0x1007") else {
        unreachable!()
    };
    assert!(
        written.contains("t=") && !written.contains("unknown"),
        "{text}"
    );
    assert!(read.contains("unknown: the run after t="), "{text}");
    assert!(next.contains("t=") && !next.contains("unknown"), "{text}");
    assert!(
        text.contains("afterimage build --lens full long.aft"),
        "{text}"
    );

    let json: Value =
        serde_json::from_str(&sandbox.ok(&format!("{words} --format json")).stdout).unwrap();
    let part = &json["parts"][0];
    assert_eq!(part["written"]["t"], 1, "{json}");
    assert!(part.get("next_read").is_none(), "{json}");
    let searched = part["next_read_after"].as_u64().expect("a time");
    assert!((rounds / 5 * 3..rounds).contains(&searched), "{json}");
}
