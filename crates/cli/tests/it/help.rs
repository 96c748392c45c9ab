//! The help is short with -h, long with --help, correct, and readable in a terminal of 80 columns.

use crate::common::Sandbox;

/// Returns "" for the program itself, and the commands that its help lists.
fn commands(sandbox: &Sandbox) -> Vec<String> {
    let help = sandbox.ok("-h").stdout;
    let listed = help
        .lines()
        .skip_while(|line| *line != "Record:")
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help");
    let commands: Vec<String> = std::iter::once("")
        .chain(listed)
        .map(str::to_owned)
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    commands
}

#[test]
fn help_is_on_standard_output_and_fits_a_terminal() {
    let sandbox = Sandbox::new();
    for command in commands(&sandbox) {
        for flag in ["-h", "--help"] {
            let mut run = sandbox.command(command.split_whitespace().chain([flag]));
            let ran = crate::common::ran(run.env("COLUMNS", "80"));
            assert_eq!(
                (ran.code, ran.stderr.as_str()),
                (Some(0), ""),
                "{command} {flag}"
            );
            assert!(ran.stdout.contains("Usage: afterimage"), "{command} {flag}");
            for line in ran.stdout.lines() {
                assert!(line.chars().count() <= 80, "{command} {flag}: {line}");
            }
            let unwrapped = crate::common::ran(run.env("COLUMNS", "500")).stdout;
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

/// Splits a command into words like a shell, up to a following command or file.
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
    for command in commands(&sandbox) {
        let help = sandbox.ok(&format!("{command} --help")).stdout;
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  afterimage "));
        for example in examples.filter(|_| !command.is_empty()) {
            let mut run = sandbox.command(words(example).iter().map(String::as_str));
            let ran = crate::common::ran(&mut run);
            assert_eq!(
                ran.code,
                Some(127),
                "only the file is missing: {example}: {ran:?}"
            );
        }
    }
}

#[test]
fn completions_are_scripts_that_name_every_command() {
    let sandbox = Sandbox::new();
    let commands = commands(&sandbox);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.ok(&format!("completions {shell}")).stdout;
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: {command}");
        }
    }
    let ran = crate::common::ran(&mut sandbox.command(["completions", "tcsh"]));
    assert_eq!(ran.code, Some(125), "{ran:?}");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("man1")).unwrap();
    sandbox.ok("man man1");
    for command in commands(&sandbox) {
        let page = match command.as_str() {
            "" => "man1/afterimage.1".to_owned(),
            command => format!("man1/afterimage-{command}.1"),
        };
        let text = std::fs::read_to_string(sandbox.path(&page)).unwrap();
        for part in [".TH", ".SH NAME", ".SH SYNOPSIS"] {
            assert!(text.contains(part), "{page} lacks {part}");
        }
    }
    sandbox.refused("man nowhere", 125, &["nowhere"]);
}
