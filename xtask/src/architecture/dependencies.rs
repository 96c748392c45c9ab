//! Checks that each crate depends only on the crates that it may use, and that crates without the
//! engine do not reach it, even indirectly.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};

/// A crate of the workspace, with the workspace crates that it may depend on.
struct Rule {
    name: &'static str,
    /// The crates that the crate may depend on under `[dependencies]`.
    may_use: &'static [&'static str],
    /// The crates, in addition to [`TESTKIT`], that the crate may depend on only under
    /// `[dev-dependencies]`.
    tests_may_use: &'static [&'static str],
    engine: bool,
}

impl Rule {
    /// Lets the crate's tests use more crates than the crate itself.
    const fn tests(mut self, tests_may_use: &'static [&'static str]) -> Self {
        self.tests_may_use = tests_may_use;
        self
    }

    /// Whether this dependency is allowed.
    fn allows(&self, used: &str, ships: bool) -> bool {
        self.may_use.contains(&used)
            || !ships && (used == TESTKIT || self.tests_may_use.contains(&used))
    }
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Rule {
    Rule {
        name,
        may_use,
        tests_may_use: &[],
        engine: false,
    }
}

const fn with_engine(name: &'static str, may_use: &'static [&'static str]) -> Rule {
    Rule {
        name,
        may_use,
        tests_may_use: &[],
        engine: true,
    }
}

const IDS: &str = "afterimage-ids";
const GRAPH: &str = "afterimage-graph";
const PARALLEL: &str = "afterimage-parallel";
const PROGRAM: &str = "afterimage-program";
const PLACEMENT: &str = "afterimage-placement";
const PATHS: &str = "afterimage-paths";
const NUMERIC: &str = "afterimage-numeric";
const WPP: &str = "afterimage-wpp";
const DATAFLOW: &str = "afterimage-dataflow";
const AFTERIMAGE: &str = "afterimage";
const DAP: &str = "afterimage-dap";
const EXPLORER: &str = "afterimage-explorer";
const BASELINES: &str = "afterimage-baselines";
const REWRITE: &str = "afterimage-rewrite";
const TRACE: &str = "afterimage-trace";
const MACHINE: &str = "afterimage-machine";
const STREAMS: &str = "afterimage-streams";
const VARIABLES: &str = "afterimage-variables";
const WET: &str = "afterimage-wet";
const SIMULATE: &str = "afterimage-simulate";
const SLICE: &str = "afterimage-slice";
const MATCHING: &str = "afterimage-matching";
const RECORD: &str = "afterimage-record";
const PROFILE: &str = "afterimage-profile";
const REPLAY: &str = "afterimage-replay";
const ANALYSES: &str = "afterimage-analyses";
const PRESENT: &str = "afterimage-present";
const DATASET: &str = "afterimage-dataset";
const MCP: &str = "afterimage-mcp";
/// The crate that only tests may use. The tests of any crate may use it.
const TESTKIT: &str = "afterimage-testkit";

/// The rules for all crates, in the order of the data flow.
const RULES: &[Rule] = &[
    pure(IDS, &[]),
    pure(GRAPH, &[IDS]),
    pure(PARALLEL, &[]),
    pure(PROGRAM, &[IDS, GRAPH, PARALLEL]),
    pure(PLACEMENT, &[IDS, GRAPH, PARALLEL, PROGRAM]),
    pure(PATHS, &[IDS, GRAPH, PARALLEL, PROGRAM, PLACEMENT]),
    pure(REWRITE, &[IDS, GRAPH, PROGRAM, PLACEMENT, PATHS]),
    pure(NUMERIC, &[]),
    pure(WPP, &[IDS, PARALLEL]),
    pure(DATAFLOW, &[IDS, WPP]),
    pure(TRACE, &[IDS, PARALLEL]),
    pure(MACHINE, &[IDS, NUMERIC, PROGRAM, TRACE]),
    pure(STREAMS, &[]),
    pure(SIMULATE, &[STREAMS]),
    pure(VARIABLES, &[IDS, PROGRAM]),
    pure(WET, &[IDS, MACHINE, NUMERIC, PROGRAM, STREAMS, TRACE, WPP]),
    pure(SLICE, &[IDS, GRAPH, PROGRAM, MACHINE, WPP]),
    pure(MATCHING, &[PARALLEL]),
    with_engine(
        RECORD,
        &[
            IDS, GRAPH, PROGRAM, PLACEMENT, PATHS, REWRITE, WPP, TRACE, MACHINE,
        ],
    )
    .tests(&[NUMERIC, WET, SLICE]),
    pure(PROFILE, &[IDS, GRAPH, PROGRAM, TRACE]),
    pure(
        REPLAY,
        &[
            IDS, GRAPH, PROGRAM, NUMERIC, WPP, TRACE, MACHINE, VARIABLES, WET, PROFILE,
        ],
    ),
    pure(
        ANALYSES,
        &[
            IDS, GRAPH, PROGRAM, NUMERIC, WPP, TRACE, MACHINE, VARIABLES, WET, SIMULATE, SLICE,
            DATAFLOW, MATCHING, PROFILE, REPLAY,
        ],
    ),
    pure(PRESENT, &[IDS, PROGRAM, WPP, PROFILE, REPLAY, ANALYSES]),
    pure(BASELINES, &[]),
    with_engine(
        AFTERIMAGE,
        &[
            IDS, PLACEMENT, PROGRAM, REWRITE, WPP, TRACE, WET, RECORD, PROFILE, REPLAY, ANALYSES,
            PRESENT,
        ],
    )
    .tests(&[MACHINE]),
    with_engine(DAP, &[IDS, PROGRAM, PROFILE, REPLAY, PRESENT, AFTERIMAGE]).tests(&[RECORD]),
    with_engine(EXPLORER, &[IDS, REPLAY, AFTERIMAGE]),
    with_engine(MCP, &[AFTERIMAGE]),
    with_engine(
        DATASET,
        &[
            IDS, GRAPH, PROGRAM, WPP, TRACE, MACHINE, WET, PROFILE, REPLAY, PRESENT, AFTERIMAGE,
        ],
    )
    .tests(&[RECORD]),
    with_engine(
        "afterimage-cli",
        &[
            IDS, PROGRAM, PLACEMENT, TRACE, WET, RECORD, PROFILE, REPLAY, ANALYSES, PRESENT,
            AFTERIMAGE, DAP, DATASET, EXPLORER, MCP,
        ],
    )
    .tests(&[WPP, DATAFLOW]),
    with_engine(
        "bench",
        &[
            IDS, PROGRAM, PLACEMENT, PATHS, REWRITE, WPP, TRACE, MACHINE, STREAMS, WET, RECORD,
            PROFILE, REPLAY, ANALYSES, AFTERIMAGE, BASELINES,
        ],
    ),
    pure(TESTKIT, &[IDS, GRAPH, PROGRAM, PLACEMENT]),
    pure("xtask", &[]),
];

/// The packages of the engine. (`ids` uses the engine's entity maps, which are a small separate
/// library.)
const ENGINE: &[&str] = &[
    "wasmtime",
    "wasmtime-environ",
    "wasmtime-wasi",
    "wiggle",
    "cranelift-codegen",
];

/// The relevant part of the output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// The kind of dependency; `None` for a normal dependency.
    kind: Option<String>,
}

impl Dependency {
    /// Whether the dependency exists outside tests.
    fn ships(&self) -> bool {
        self.dep_kinds
            .iter()
            .any(|kind| kind.kind.as_deref() != Some("dev"))
    }
}

/// Returns the violations in the output of `cargo metadata --format-version 1`.
///
/// # Errors
/// Returns an error if the output cannot be read.
pub fn check(metadata: &str) -> Result<Vec<String>> {
    let metadata: Metadata =
        serde_json::from_str(metadata).context("cannot read the output of cargo metadata")?;
    let names: HashMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let name = |id: &str| names.get(id).copied().unwrap_or("?");
    let nodes: HashMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let is_member = |id: &str| metadata.workspace_members.iter().any(|member| member == id);

    let mut violations = Vec::new();
    for rule in RULES {
        let present = |id: &String| name(id) == rule.name;
        if !metadata.workspace_members.iter().any(present) {
            violations.push(format!(
                "there is a rule for {}, but no such crate",
                rule.name
            ));
        }
    }
    for member in &metadata.workspace_members {
        let own = name(member);
        let Some(rule) = RULES.iter().find(|rule| rule.name == own) else {
            violations.push(format!("{own} has no rule: say what it may depend on"));
            continue;
        };
        for dependency in nodes
            .get(member.as_str())
            .iter()
            .flat_map(|node| &node.deps)
        {
            let used = name(&dependency.pkg);
            if is_member(&dependency.pkg) && !rule.allows(used, dependency.ships()) {
                violations.push(format!("{own} must not depend on {used}"));
            }
        }
        if !rule.engine
            && let Some(way) = way_to_engine(member, &nodes, &name)
        {
            violations.push(format!("{own} must not reach the engine: {way}"));
        }
    }
    Ok(violations)
}

/// Returns the shortest chain of shipped dependencies from `start` to the engine. Time: O(V + E).
fn way_to_engine<'a>(
    start: &'a str,
    nodes: &HashMap<&'a str, &'a Node>,
    name: &impl Fn(&str) -> &'a str,
) -> Option<String> {
    let mut reached_from = HashMap::<&str, Option<&str>>::from([(start, None)]);
    let mut waiting = VecDeque::from([start]);
    while let Some(id) = waiting.pop_front() {
        if ENGINE.contains(&name(id)) {
            let mut way = vec![name(id)];
            let mut at = id;
            while let Some(&Some(before)) = reached_from.get(at) {
                way.push(name(before));
                at = before;
            }
            way.reverse();
            return Some(way.join(" → "));
        }
        for dependency in nodes.get(id).iter().flat_map(|node| &node.deps) {
            if dependency.ships() && !reached_from.contains_key(dependency.pkg.as_str()) {
                reached_from.insert(&dependency.pkg, Some(id));
                waiting.push_back(&dependency.pkg);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns Cargo's output for a workspace with every crate of [`RULES`] and these dependencies.
    fn metadata(edges: &[(&str, &str, Option<&str>)]) -> String {
        let members: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        let mut all = members.clone();
        all.extend(["wasmtime", "between"]);
        let nodes: Vec<_> = all
            .iter()
            .map(|&id| {
                let deps: Vec<_> = edges
                    .iter()
                    .filter(|edge| edge.0 == id)
                    .map(|&(_, pkg, kind)| json!({"pkg": pkg, "dep_kinds": [{"kind": kind}]}))
                    .collect();
                json!({"id": id, "deps": deps})
            })
            .collect();
        let packages: Vec<_> = all.iter().map(|id| json!({"id": id, "name": id})).collect();
        json!({"packages": packages, "workspace_members": members, "resolve": {"nodes": nodes}})
            .to_string()
    }

    #[test]
    fn what_is_allowed_is_no_violation() {
        let edges = [
            (RECORD, "wasmtime", None),
            (RECORD, TRACE, None),
            (REPLAY, TRACE, None),
            (GRAPH, TESTKIT, Some("dev")),
            (REPLAY, "wasmtime", Some("dev")),
        ];
        assert_eq!(check(&metadata(&edges)).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_crate_may_not_use_a_room_behind_it() {
        assert_eq!(
            check(&metadata(&[(RECORD, REPLAY, None)])).unwrap(),
            ["afterimage-record must not depend on afterimage-replay"]
        );
    }

    #[test]
    fn what_tests_may_use_does_not_ship() {
        assert_eq!(
            check(&metadata(&[
                (RECORD, SLICE, Some("dev")),
                (RECORD, WET, None)
            ]))
            .unwrap(),
            ["afterimage-record must not depend on afterimage-wet"]
        );
    }

    #[test]
    fn the_test_kit_does_not_ship() {
        assert_eq!(
            check(&metadata(&[(TRACE, TESTKIT, None)])).unwrap(),
            ["afterimage-trace must not depend on afterimage-testkit"]
        );
    }

    #[test]
    fn the_engine_is_found_behind_others() {
        let edges = [
            (REPLAY, "between", None),
            ("between", "wasmtime", Some("build")),
        ];
        assert_eq!(
            check(&metadata(&edges)).unwrap(),
            ["afterimage-replay must not reach the engine: afterimage-replay → between → wasmtime"]
        );
    }

    #[test]
    fn a_crate_without_a_rule_and_a_rule_without_a_crate_are_found() {
        let text = metadata(&[]).replace("\"xtask\"", "\"stranger\"");
        assert_eq!(
            check(&text).unwrap(),
            [
                "there is a rule for xtask, but no such crate",
                "stranger has no rule: say what it may depend on"
            ]
        );
    }
}
