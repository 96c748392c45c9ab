//! Reproduces figures 10 and 11 of Zhang and Gupta 2001 exactly.

use std::collections::BTreeSet;

use afterimage_dataflow::TimestampedGraph;
use afterimage_dataflow::slices::{
    Approach, Criterion, Kind, Slice, Slicing, Statement, Subject, Variable, slice_observed,
};

const NAMES: [&str; 6] = ["I", "J", "N", "X", "Y", "Z"];

fn variables(names: &str) -> Vec<Variable> {
    let number = |name: char| NAMES.iter().position(|other| *other == name.to_string());
    names
        .chars()
        .map(|name| Variable(number(name).unwrap() as u32))
        .collect()
}

/// Returns the program of Figure 10, with definitions, uses and control dependences. Node 0 is
/// unused. In the paper, 13 depends on the end of the loop.
fn statements() -> Vec<Statement> {
    let of = |defines: &str, uses: &str, controlled_by: &[usize]| Statement {
        defines: variables(defines),
        uses: variables(uses),
        controlled_by: controlled_by.to_vec(),
    };
    vec![
        Statement::default(),
        of("N", "", &[]),
        of("I", "", &[]),
        of("J", "", &[]),
        of("", "IN", &[]),
        of("X", "", &[4]),
        of("", "X", &[4]),
        of("Y", "X", &[6]),
        of("Y", "X", &[6]),
        of("Z", "Y", &[4]),
        of("", "Z", &[4]),
        of("J", "", &[4]),
        of("I", "I", &[4]),
        of("Z", "ZJ", &[4]),
        of("", "", &[]),
    ]
}

fn path() -> Vec<usize> {
    let mut path = vec![1, 2, 3];
    path.extend([4, 5, 6, 7, 9, 10, 11, 12]);
    path.extend([4, 5, 6, 8, 9, 10, 11, 12]);
    path.extend([4, 5, 6, 7, 9, 10, 11, 12]);
    path.extend([4, 13, 14]);
    path
}

/// Returns the control-flow graph, as the predecessors of each node.
fn before() -> Vec<Vec<usize>> {
    let before: [&[usize]; 15] = [
        &[],
        &[],
        &[1],
        &[2],
        &[3, 12],
        &[4],
        &[5],
        &[6],
        &[6],
        &[7, 8],
        &[9],
        &[10],
        &[11],
        &[4],
        &[13],
    ];
    before.iter().map(|before| before.to_vec()).collect()
}

/// A row, with the queries in the paper's notation, in no order, and the slice.
type Shown = (BTreeSet<String>, Vec<usize>);

/// A figure.
struct Figure {
    rows: Vec<Shown>,
    solved: Vec<BTreeSet<String>>,
    /// The nodes that came into the slice by a control dependence.
    control: Vec<usize>,
    slice: Slice,
}

fn figure(approach: Approach) -> Figure {
    let (path, statements, before) = (path(), statements(), before());
    let graph = TimestampedGraph::of_path(&path);
    let slicing = Slicing::new(&graph, &statements, &before);
    let criterion = Criterion {
        node: 14,
        time: 30,
        variables: variables("Z"),
    };
    let (mut rows, mut solved, mut control) = (Vec::new(), Vec::new(), Vec::new());
    let mut so_far = BTreeSet::from([14]);
    let mut observe = |row: afterimage_dataflow::slices::Row| {
        let show = |queries: &[(Option<afterimage_dataflow::Times>, usize, Subject)]| {
            let shown = queries.iter().filter_map(|(times, node, subject)| {
                // The paper does not list queries for control.
                let Subject::Variable(Variable(variable)) = subject else {
                    return None;
                };
                let times = times.as_ref().map_or("*".to_owned(), |t| format!("[{t}]"));
                Some(format!("<{times},{node}>{}", NAMES[*variable as usize]))
            });
            shown.collect::<BTreeSet<String>>()
        };
        let by_control = row.added.iter().filter(|(_, kind)| *kind == Kind::Control);
        control.extend(by_control.map(|&(node, _)| node));
        so_far.extend(row.added.iter().map(|&(node, _)| node));
        rows.push((show(&row.queries), so_far.iter().copied().collect()));
        solved.push(show(&row.solved));
    };
    let slice = slice_observed(&slicing, &criterion, approach, Some(&mut observe));
    Figure {
        rows,
        solved,
        control,
        slice,
    }
}

fn row(queries: &str, slice: &[usize]) -> Shown {
    let queries = queries.split_whitespace();
    (queries.map(str::to_owned).collect(), slice.to_vec())
}

#[test]
fn figure_10_timestamps() {
    let graph = TimestampedGraph::of_path(&path());
    let shown = |node| graph.timestamps(node).to_string();
    let all: Vec<String> = (1..=14).map(shown).collect();
    assert_eq!(
        all,
        [
            "1", "2", "3", "4:28:8", "5:21:8", "6:22:8", "7, 23", "15", "8:24:8", "9:25:8",
            "10:26:8", "11:27:8", "29", "30"
        ]
    );
}

#[test]
fn figure_11_approach_1() {
    let Figure {
        rows,
        solved,
        control,
        slice,
    } = figure(Approach::Nodes);
    let expected = [
        row("<*,14>Z", &[14]),
        row("<*,13>Z <*,13>J", &[13, 14]),
        row("<*,4>Z <*,4>J <*,4>I <*,4>N", &[4, 13, 14]),
        row(
            "<*,3>Z <*,3>I <*,3>N <*,12>Z <*,12>J <*,12>I <*,12>N",
            &[3, 4, 12, 13, 14],
        ),
        row(
            "<*,2>Z <*,2>N <*,11>Z <*,11>I <*,11>N",
            &[2, 3, 4, 11, 12, 13, 14],
        ),
        row(
            "<*,1>Z <*,10>Z <*,10>I <*,10>N",
            &[1, 2, 3, 4, 11, 12, 13, 14],
        ),
        row("<*,9>Y <*,9>I <*,9>N", &[1, 2, 3, 4, 9, 11, 12, 13, 14]),
        row(
            "<*,8>X <*,8>I <*,8>N <*,7>X <*,7>I <*,7>N",
            &[1, 2, 3, 4, 7, 8, 9, 11, 12, 13, 14],
        ),
        row(
            "<*,6>X <*,6>I <*,6>N",
            &[1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14],
        ),
        row(
            "<*,5>I <*,5>N",
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14],
        ),
        row("", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14]),
    ];
    assert_eq!(rows, expected);
    // The last row has solved queries.
    assert_eq!(solved[10], row("<*,4>I <*,4>N", &[]).0);
    assert!(solved[..10].iter().all(BTreeSet::is_empty));
    assert_eq!(slice.nodes, (1..=14).filter(|&n| n != 10).collect());
    assert_eq!(control, [4, 6]);
}

#[test]
fn figure_11_approach_2() {
    let Figure {
        rows,
        solved,
        control,
        slice,
    } = figure(Approach::Edges);
    let expected = [
        row("<[30],14>Z", &[14]),
        row("<[29],13>Z <[29],13>J", &[13, 14]),
        row(
            "<[28],4>Z <[28],4>J <[4:28:8],4>I <[4:28:8],4>N",
            &[4, 13, 14],
        ),
        row(
            "<[27],12>Z <[27],12>J <[3],3>I <[11:27:8],12>I <[3],3>N <[11:27:8],12>N",
            &[4, 12, 13, 14],
        ),
        row(
            "<[26],11>Z <[10:26:8],11>I <[2],2>N <[10:26:8],11>N",
            &[2, 4, 11, 12, 13, 14],
        ),
        row(
            "<[25],10>Z <[9:25:8],10>I <[9:25:8],10>N",
            &[1, 2, 4, 11, 12, 13, 14],
        ),
        row(
            "<[8:24:8],9>Y <[8:24:8],9>I <[8:24:8],9>N",
            &[1, 2, 4, 9, 11, 12, 13, 14],
        ),
        row(
            "<[7,23],7>X <[15],8>X <[7,23],7>I <[15],8>I <[7,23],7>N <[15],8>N",
            &[1, 2, 4, 7, 8, 9, 11, 12, 13, 14],
        ),
        row(
            "<[6:22:8],6>X <[6:22:8],6>I <[6:22:8],6>N",
            &[1, 2, 4, 6, 7, 8, 9, 11, 12, 13, 14],
        ),
        row(
            "<[5:21:8],5>I <[5:21:8],5>N",
            &[1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14],
        ),
        row("", &[1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14]),
    ];
    let spaceless = |rows: Vec<Shown>| -> Vec<Shown> {
        let of = |set: BTreeSet<String>| set.iter().map(|q| q.replace(' ', "")).collect();
        rows.into_iter()
            .map(|(queries, slice)| (of(queries), slice))
            .collect()
    };
    assert_eq!(spaceless(rows), expected);
    assert_eq!(solved[10], row("<[4:28:8],4>I <[4:28:8],4>N", &[]).0);
    assert!(solved[..10].iter().all(BTreeSet::is_empty));
    assert_eq!(
        slice.nodes,
        (1..=14).filter(|&n| n != 3 && n != 10).collect()
    );
    assert_eq!(control, [4, 6]);
}

/// The paper's third row says 13 instead of 4 in one of the queries. Its last two rows show the
/// slice of the next step.
#[test]
fn figure_11_approach_3() {
    let Figure {
        rows,
        solved,
        control,
        slice,
    } = figure(Approach::Instances);
    let expected = [
        row("<[30],14>Z", &[14]),
        row("<[29],13>Z <[29],13>J", &[13, 14]),
        row("<[28],4>Z <[28],4>J <[28],4>I <[28],4>N", &[4, 13, 14]),
        row(
            "<[27],12>Z <[27],12>J <[27],12>I <[27],12>N",
            &[4, 12, 13, 14],
        ),
        row("<[26],11>Z <[26],11>I <[26],11>N", &[4, 11, 12, 13, 14]),
        row("<[25],10>Z <[25],10>I <[25],10>N", &[4, 11, 12, 13, 14]),
        row("<[24],9>Y <[24],9>I <[24],9>N", &[4, 9, 11, 12, 13, 14]),
        row("<[23],7>X <[23],7>I <[23],7>N", &[4, 7, 9, 11, 12, 13, 14]),
        row(
            "<[22],6>X <[22],6>I <[22],6>N",
            &[4, 6, 7, 9, 11, 12, 13, 14],
        ),
    ];
    assert_eq!(rows[..9], expected);
    let end = rows.len() - 3;
    let last = [
        row("<[3],3>I <[3],3>N", &[4, 5, 6, 7, 9, 11, 12, 13, 14]),
        row("<[2],2>N", &[2, 4, 5, 6, 7, 9, 11, 12, 13, 14]),
        row("", &[1, 2, 4, 5, 6, 7, 9, 11, 12, 13, 14]),
    ];
    assert_eq!(rows[end..], last);
    assert!(solved.iter().all(BTreeSet::is_empty));
    assert_eq!(
        slice.nodes,
        BTreeSet::from([1, 2, 4, 5, 6, 7, 9, 11, 12, 13, 14])
    );
    assert_eq!(control, [4, 6]);
    // Node 7 is in the slice only with its last execution.
    assert_eq!(slice.instances[&7].to_string(), "23");
    assert_eq!(slice.instances[&4].to_string(), "4:28:8");
}
