//! Help: short with -h, long with --help, true, and readable in a terminal of 80 columns.

mod common;

use common::Sandbox;

const COMMANDS: [&str; 18] = [
    "",
    "record",
    "profile",
    "build",
    "export",
    "info",
    "verify",
    "cfg",
    "instrument",
    "slice",
    "why",
    "why-not",
    "redundancy",
    "dataflow",
    "currency",
    "match",
    "diff",
    "simulate",
];

#[test]
fn help_is_on_standard_output_and_fits_a_terminal() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let mut run = sandbox.command(command.split_whitespace().chain([flag]));
            let ran = common::ran(run.env("COLUMNS", "80"));
            assert_eq!(
                (ran.code, ran.stderr.as_str()),
                (Some(0), ""),
                "{command} {flag}"
            );
            assert!(ran.stdout.contains("Usage: afterimage"), "{command} {flag}");
            for line in ran.stdout.lines() {
                assert!(line.chars().count() <= 80, "{command} {flag}: {line}");
            }
            let unwrapped = common::ran(run.env("COLUMNS", "500")).stdout;
            for line in unwrapped
                .lines()
                .filter(|line| line.starts_with("  afterimage "))
            {
                assert!(
                    ran.stdout.contains(line),
                    "an example is not broken: {line}"
                );
            }
        }
    }
    assert!(sandbox.ok("--version").stdout.starts_with("afterimage "));
}

/// The words of a command as a shell takes them, up to where another command or a file follows.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for char in command.chars() {
        match char {
            '\'' => quoted = !quoted,
            '|' | '&' | '>' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn exit_codes_are_documented() {
    let sandbox = Sandbox::new();
    for words in ["--help", "-h", "record --help"] {
        let help = sandbox.ok(words).stdout;
        for code in ["124", "125", "126", "127", "130", "134", "143"] {
            assert!(help.contains(code), "{words} lacks {code}");
        }
    }
    assert!(sandbox.ok("verify --help").stdout.contains("Exits with 1"));
}

#[test]
fn examples_of_the_help_parse() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        let help = sandbox.ok(&format!("{command} --help")).stdout;
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  afterimage "));
        for example in examples.filter(|_| !command.is_empty()) {
            let mut run = sandbox.command(words(example).iter().map(String::as_str));
            let ran = common::ran(&mut run);
            assert_eq!(
                ran.code,
                Some(127),
                "only the file is missing: {example}: {ran:?}"
            );
        }
    }
}
