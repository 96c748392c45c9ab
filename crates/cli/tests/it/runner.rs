//! Runs the tests of a crate, each in a separate run.

use crate::common::Sandbox;

const TESTS: &str = r#"
pub fn half(n: i32) -> i32 {
    let halves = [0, 1, 2];
    halves[n as usize / 2]
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves() {
        assert_eq!(half(4), 2);
    }

    #[test]
    fn larger() {
        println!("about to halve");
        assert_eq!(half(6), 3);
    }

    #[test]
    fn wrong() {
        assert_eq!(half(2), 2, "two is not its half");
    }

    #[test]
    fn gives_up() -> Result<(), String> {
        println!("before that");
        Err("no such half".to_owned())
    }

    #[test]
    #[ignore] // This test is part of the recorded program. The runner must leave it out.
    fn slow() {
        println!("slow indeed");
    }
}
"#;

#[test]
fn each_test_is_run_by_itself_and_failing_ones_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("crate.rs", TESTS);
    sandbox.rustc_with(&["--test"], "crate", "crate", 0);
    let ran = sandbox.run("runner crate.wasm");
    let told = ran.stdout.as_str();
    assert_eq!(ran.code, Some(101), "{ran:?}");
    for part in [
        "\nrunning 5 tests\ntest tests::gives_up ... FAILED\ntest tests::halves ... ok\ntest tests::larger ... FAILED\ntest tests::slow ... ignored\ntest tests::wrong ... FAILED\n",
        "\n---- tests::gives_up ----\nbefore that\nError: \"no such half\"\nrecording: afterimage/crate.tests.gives_up.aft\nthe test returned an error: \"no such half\", at crate.rs:31 in crate::tests::gives_up\n",
        "\n---- tests::larger ----\nabout to halve\n",
        "recording: afterimage/crate.tests.larger.aft\npanicked: index out of bounds: the len is 3 but the index is 3, at crate.rs:4 in crate::half, called from crate.rs:19\n  called at crate.rs:4 in crate::half\n  called at crate.rs:19 in ",
        "recording: afterimage/crate.tests.wrong.aft\npanicked: assertion `left == right` failed: two is not its half; left: 1; right: 2, at crate.rs:24 in crate::tests::wrong, called from crate.rs:23\n",
        "\nfailures:\n    tests::gives_up\n    tests::larger\n    tests::wrong\n\ntest result: FAILED. 1 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in ",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(!told.contains("\nabout to halve\ntest"), "{told}");
    let mut kept = std::fs::read_dir(sandbox.path("afterimage")).unwrap();
    assert!(kept.all(|file| {
        !file
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .contains("halves")
    }));

    // Library code is not listed.
    assert!(!told.contains("FnOnce::call_once"), "{told}");

    // Filters and output options work as in libtest.
    let ran = sandbox.run("runner crate.wasm larger --nocapture");
    assert_eq!(ran.stdout.matches("about to halve\n").count(), 1, "{ran:?}");
    let ran = sandbox.run("runner crate.wasm --help");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("--include-ignored"), "{ran:?}");
    let ran = sandbox.run("runner crate.wasm hal --nocapture --test-threads 1");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out;"),
        "{ran:?}"
    );
    let ran = sandbox.run("runner crate.wasm --ignored --nocapture");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("slow indeed\ntest tests::slow ... ok\n"),
        "{ran:?}"
    );
    // The recording of a test that no longer fails is not kept.
    let larger = TESTS.replace("[0, 1, 2]", "[0, 1, 2, 3]");
    sandbox.write("crate.rs", larger);
    sandbox.rustc_with(&["--test"], "crate", "crate", 0);
    let ran = sandbox.run("runner crate.wasm larger");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!sandbox.path("afterimage/crate.tests.larger.aft").exists());
}

#[test]
fn a_program_is_recorded_and_its_exit_code_is_ours() {
    let sandbox = Sandbox::new();
    let source =
        r#"fn main() { println!("{}", std::env::args().nth(1).unwrap()); std::process::exit(3) }"#;
    sandbox.rust("app", source);
    let ran = sandbox.run("runner --output kept app.wasm hello");
    assert_eq!((ran.code, &*ran.stdout), (Some(3), "hello\n"), "{ran:?}");
    sandbox.ok("info kept/app.aft");
}
