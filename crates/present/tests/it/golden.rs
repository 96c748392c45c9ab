//! Tests one small program in every format.

use std::path::PathBuf;

use crate::common::{Ending, TEXT, with_profile};
use afterimage_ids::FuncId;
use afterimage_present::export::{callgrind, lcov};
use afterimage_present::{
    Annotation, NoSources, PresentError, Sources, Style, annotate, calls_dot, cfg_dot, cfg_text,
    csv, json, text,
};
use afterimage_profile::{By, Options, Profile, Report, Scope, Sort};

const KINDS: [(By, &str); 5] = [
    (By::Function, "function"),
    (By::Line, "line"),
    (By::Block, "block"),
    (By::Edge, "edge"),
    (By::Instruction, "instruction"),
];

/// Supplies the program's text as its own source.
struct Own;

impl Sources for Own {
    fn read(&self, path: &str) -> Option<String> {
        path.ends_with("program.wat").then(|| TEXT.to_owned())
    }
}

/// Compares with a file of `tests/golden`, or writes the file if `BLESS` is set.
fn golden(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        got == expected,
        "{name} differs (BLESS=1 accepts this).\n--- expected\n{expected}\n--- got\n{got}"
    );
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), PresentError>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn report(profile: &Profile<'_>, options: Options) -> Report {
    Report::new(profile, &options).unwrap()
}

#[test]
fn tables_for_a_terminal() {
    with_profile(true, Ending::Return, |profile| {
        for (by, name) in KINDS {
            let sort = Some(Sort::Instructions);
            let report = report(
                profile,
                Options {
                    by,
                    sort,
                    ..Options::default()
                },
            );
            let got = written(|out| text(out, profile, &report, &Own, Style::default()));
            golden(&format!("{name}.txt"), &got);
        }
    });
}

#[test]
fn the_top_rows_say_how_many_are_left() {
    with_profile(true, Ending::Trap, |profile| {
        let report = report(
            profile,
            Options {
                top: Some(1),
                ..Options::default()
            },
        );
        let got = written(|out| {
            text(
                out,
                profile,
                &report,
                &Own,
                Style {
                    color: true,
                    width: None,
                },
            )
        });
        golden("top.txt", &got);
    });
}

#[test]
fn comma_separated_values() {
    with_profile(true, Ending::Return, |profile| {
        for (by, name) in KINDS {
            let report = report(
                profile,
                Options {
                    by,
                    ..Options::default()
                },
            );
            let got = written(|out| csv(out, profile, &report));
            assert_eq!(got.matches("\r\n").count(), report.rows.len() + 1);
            // The golden file has LF line ends, because a checkout may change CRLF.
            golden(&format!("{name}.csv"), &got.replace("\r\n", "\n"));
        }
    });
}

#[test]
fn json_documents() {
    with_profile(true, Ending::Trap, |profile| {
        for (by, name) in KINDS {
            let report = report(
                profile,
                Options {
                    by,
                    ..Options::default()
                },
            );
            let compact = written(|out| json(out, profile, &report, None));
            let value: serde_json::Value = serde_json::from_str(&compact).unwrap();
            assert_eq!(value["rows"].as_array().unwrap().len(), report.rows.len());
            golden(
                &format!("{name}.json"),
                &(serde_json::to_string_pretty(&value).unwrap() + "\n"),
            );
        }
    });
}

#[test]
fn annotated_source() {
    let cases: [(&str, Ending, Scope, bool, &dyn Sources); 4] = [
        ("annotate.txt", Ending::Return, Scope::All, true, &Own),
        (
            "annotate-trap.txt",
            Ending::Trap,
            Scope::Only(vec![FuncId::from_u32(2)]),
            true,
            &Own,
        ),
        (
            "annotate-missing.txt",
            Ending::Return,
            Scope::All,
            true,
            &NoSources,
        ),
        (
            "annotate-stripped.txt",
            Ending::Return,
            Scope::All,
            false,
            &NoSources,
        ),
    ];
    for (name, ending, scope, debug, sources) in cases {
        with_profile(debug, ending, |profile| {
            let annotation = Annotation {
                scope,
                listings: 1,
                code: None,
            };
            let style = Style {
                color: ending == Ending::Trap,
                width: None,
            };
            let got = written(|out| annotate(out, profile, &annotation, sources, style));
            golden(name, &got);
        });
    }
}

#[test]
fn formats_of_other_tools() {
    with_profile(true, Ending::Return, |profile| {
        golden(
            "lcov.info",
            &written(|out| lcov(out, profile, &Scope::All, None, &NoSources)),
        );
        golden(
            "callgrind.out",
            &written(|out| callgrind(out, profile, &Scope::All)),
        );
    });
    with_profile(false, Ending::Trap, |profile| {
        golden(
            "callgrind-stripped.out",
            &written(|out| callgrind(out, profile, &Scope::All)),
        );
        let refused = lcov(&mut Vec::new(), profile, &Scope::All, None, &NoSources);
        assert!(matches!(refused, Err(PresentError::NoSource(_))));
    });
}

#[test]
fn graphs() {
    with_profile(true, Ending::Return, |profile| {
        golden(
            "calls.dot",
            &written(|out| calls_dot(out, profile, &Scope::All)),
        );
        let sum = FuncId::from_u32(2);
        golden("sum.dot", &written(|out| cfg_dot(out, profile, sum)));
        golden("sum.cfg", &written(|out| cfg_text(out, profile, sum)));
        let imported = cfg_dot(&mut Vec::new(), profile, FuncId::from_u32(0));
        assert!(matches!(imported, Err(PresentError::NoGraph(0))));
    });
    with_profile(true, Ending::Trap, |profile| {
        golden(
            "main-trap.cfg",
            &written(|out| cfg_text(out, profile, FuncId::from_u32(1))),
        );
    });
}
