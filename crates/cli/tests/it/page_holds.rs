//! The HTML page of a profile agrees with its JSON, and nothing in a program becomes markup.

use std::collections::BTreeMap;

use afterimage_testkit::tools::{installed, skipped};
use serde_json::Value;

use crate::common::Sandbox;

const PROGRAM: &str = "#include <stdio.h>
static int classify(int n) {
    if (n % 3 == 0)
        return 0;
    switch (n % 4) {
    case 0: return 1;
    case 1: return 2;
    default: break;
    }
    return n > 1000 ? 4 : 3;
}
/* <script>alert('source')</script> & \"more\" */
static int never(int n) {
    return n * 2;
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 1234 * argc; i++)
        sum += classify(i % 10);
    if (argc > 5)
        sum += never(argc);
    printf(\"%d\\n\", sum);
    return 0;
}
";

/// The name of a file that would run a script if it were not escaped.
const FILE: &str = "a\"'><script>alert(1)<&.c";

/// Compiles a program without optimisation. Returns `None` if there is no clang.
fn compiled(sandbox: &Sandbox, text: &str, file: &str) -> Option<()> {
    let clang = ["clang-19", "clang"]
        .into_iter()
        .find(|name| installed(name))?;
    sandbox.write(file, text);
    let mut command = sandbox.any(clang);
    command.args(["--target=wasm32-wasi", "-g", "-O0", "-o", "app.wasm", file]);
    let built = command.output().unwrap();
    assert!(built.status.success(), "{built:?}");
    Some(())
}

fn no_clang() {
    skipped("the page of a program in C: clang is not installed");
}

/// Returns every text between `begin` and `end`.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> Vec<&'t str> {
    let parts = text.split(begin).skip(1);
    parts
        .filter_map(|part| Some(part.split_once(end)?.0))
        .collect()
}

/// Returns the text of an element without markup.
fn bare(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

fn number(html: &str) -> u64 {
    let text = bare(html).replace(['×', '½', ',', ' '], "");
    match text.as_str() {
        // Functions that the linker removed have no instructions.
        "" => 0,
        text => text.parse().unwrap_or_else(|_| panic!("{html}")),
    }
}

/// The parts of a page.
#[derive(Debug, Default)]
struct Page {
    /// The counts by file and line.
    lines: BTreeMap<(String, u64), u64>,
    /// The number of executed directions and of all directions, by file and line.
    branches: BTreeMap<(String, u64), (u64, u64)>,
    /// The numbers of calls and instructions of each function, by name.
    functions: BTreeMap<String, Vec<(u64, u64)>>,
    /// `Lines`, `Functions`, `Branches`: the covered and the total number.
    tiles: BTreeMap<String, (u64, u64)>,
}

impl Page {
    fn of(html: &str) -> Self {
        let mut page = Self::default();
        for tile in between(html, "<div class=\"tile\">", "</div>") {
            let name = between(tile, "<span class=\"name\">", "</span>")[0];
            let of = between(tile, "<span class=\"of\">", "</span>")[0];
            let (ran, all) = of.split_once(" of ").unwrap();
            page.tiles
                .insert(name.to_owned(), (number(ran), number(all)));
        }
        for section in between(html, "<section id=\"f", "</section>") {
            let path = bare(between(section, "<h2>", "</h2>")[0]);
            let (lists, source) = section
                .split_once("<div class=\"code\">")
                .unwrap_or((section, ""));
            for row in between(lists, "<tr><td class=\"n\">", "</tr>") {
                let cells = Vec::from_iter(row.split("</td>"));
                let name = bare(between(row, "<code>", "</code>")[0]);
                let own = page.functions.entry(name).or_default();
                own.push((number(cells[0]), number(cells[1])));
            }
            for row in between(source, "<tr", "</tr>") {
                let cells = between(row, "<td ", "</td>").into_iter();
                let cells = Vec::from_iter(cells.map(|cell| cell.split_once('>').unwrap().1));
                let [line, count, ways] = cells[..] else {
                    continue;
                };
                let at = (path.clone(), number(line));
                if !bare(count).is_empty() {
                    page.lines.insert(at.clone(), number(count));
                    assert_eq!(row.contains("class=\"miss\""), number(count) == 0, "{row}");
                    assert_eq!(count.contains('×'), number(count) == 0, "{row}");
                }
                if let Some((ran, all)) =
                    bare(ways.split("<small>").next().unwrap()).split_once('/')
                {
                    page.branches.insert(at, (number(ran), number(all)));
                }
            }
        }
        page
    }
}

fn rows(sandbox: &Sandbox, words: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(&sandbox.ok(words).stdout).unwrap();
    document["rows"].as_array().unwrap().clone()
}

/// Whether the page shows lines of a file.
fn path_is_shown(page: &Page, path: &str) -> bool {
    page.lines.keys().any(|known| known.0 == path)
}

/// Compares the page about recordings with their JSON and lcov.
fn agrees(sandbox: &Sandbox, recordings: &str, code: &str) -> String {
    let what = format!("profile {recordings} --code {code}");
    let html = sandbox.ok(&format!("{what} --format html")).stdout;
    let page = Page::of(&html);

    let mut lines = BTreeMap::new();
    for row in rows(sandbox, &format!("{what} --by line --format json")) {
        let source = &row["source"];
        let at = (
            source["file"].as_str().unwrap().to_owned(),
            source["line"].as_u64().unwrap(),
        );
        lines.insert(at, row["count"].as_u64().unwrap());
    }
    let at_hand = |(at, _): &(&(String, u64), &u64)| path_is_shown(&page, &at.0);
    let expected =
        BTreeMap::from_iter(lines.iter().filter(at_hand).map(|(at, n)| (at.clone(), *n)));
    assert_eq!(page.lines, expected);
    let ran = lines.values().filter(|count| **count > 0).count() as u64;
    assert_eq!(page.tiles["Lines"], (ran, lines.len() as u64));

    let mut functions = 0;
    for row in rows(sandbox, &format!("{what} --format json")) {
        let name = row["function"]["name"].as_str().unwrap();
        let counts = (
            row["entries"].as_u64().unwrap(),
            row["instructions"].as_u64().unwrap(),
        );
        assert!(page.functions[name].contains(&counts), "{name}: {counts:?}");
        functions += u64::from(counts.0 > 0);
    }
    assert_eq!(page.tiles["Functions"].0, functions);

    let lcov = sandbox.ok(&format!("{what} --format lcov")).stdout;
    let mut path = String::new();
    let mut branches = BTreeMap::<_, (u64, u64)>::new();
    for row in lcov.lines() {
        if let Some(file) = row.strip_prefix("SF:") {
            path = file.to_owned();
        } else if let Some(branch) = row.strip_prefix("BRDA:") {
            let fields = Vec::from_iter(branch.split(','));
            let at = (path.clone(), fields[0].parse().unwrap());
            let ways = branches.entry(at).or_default();
            ways.0 += u64::from(!["0", "-"].contains(&fields[3]));
            ways.1 += 1;
        }
    }
    let sum = branches
        .values()
        .fold((0, 0), |sum, ways| (sum.0 + ways.0, sum.1 + ways.1));
    // lcov leaves out files whose source is not available.
    if lines.keys().all(|at| path_is_shown(&page, &at.0)) {
        assert_eq!(page.tiles["Branches"], sum);
    }
    branches.retain(|at, _| page.lines.contains_key(at) || page.branches.contains_key(at));
    assert_eq!(page.branches, branches);
    html
}

#[test]
fn the_page_has_the_numbers_of_json_and_lcov() {
    let sandbox = Sandbox::new();
    let Some(()) = compiled(&sandbox, PROGRAM, FILE) else {
        return no_clang();
    };
    sandbox.ok("record -o one.aft app.wasm");
    sandbox.ok("record -o seven.aft app.wasm 2 3 4 5 6 7");
    let one = agrees(&sandbox, "one.aft", "mine");
    assert!(one.contains("<i class=\"x\" title=\"never ran\">×</i> 0"));
    assert!(one.contains("Library code is left out: "), "{one}");
    let both = agrees(&sandbox, "one.aft seven.aft", "mine");
    assert!(both.contains("<h1>Coverage of one.aft and 1 more recording</h1>"));
    assert!(both.contains(" over 2 runs; "));
    agrees(&sandbox, "one.aft", "all");
    let none = "no source file matches nothing.c";
    sandbox.refused(
        "profile one.aft --format html --code nothing.c",
        125,
        &[none],
    );
    sandbox.refused("profile one.aft --format html --limit 3", 125, &["--limit"]);
}

#[test]
fn a_page_holds_no_markup_of_a_program_and_loads_nothing() {
    let sandbox = Sandbox::new();
    let Some(()) = compiled(&sandbox, PROGRAM, FILE) else {
        return no_clang();
    };
    sandbox.ok("record app.wasm");
    let html = sandbox
        .ok("profile app.aft --format html --code all")
        .stdout;
    assert!(!html.contains("<script") && !html.contains("</script"));
    for loads in [
        "src=",
        "href=\"http",
        "@import",
        "url(",
        "javascript:",
        " on",
    ] {
        let tags = between(&html, "<", ">");
        let found = tags
            .iter()
            .find(|tag| tag.contains(loads) && !tag.starts_with("meta"));
        assert_eq!(found, None, "{loads}");
    }
    assert!(
        html.contains(
            "&lt;script&gt;alert(&#39;source&#39;)&lt;/script&gt; &amp; &quot;more&quot;"
        )
    );
    assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
    // Each tag is closed.
    for tag in [
        "section", "table", "tr", "td", "th", "div", "details", "h2", "a", "code", "span", "i", "p",
    ] {
        let begun =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(begun, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn source_that_is_gone_is_missed_once() {
    let sandbox = Sandbox::new();
    let Some(()) = compiled(&sandbox, PROGRAM, "app.c") else {
        return no_clang();
    };
    sandbox.ok("record app.wasm");
    std::fs::remove_file(sandbox.path("app.c")).unwrap();
    let html = sandbox.ok("profile app.aft --format html -o page.html");
    assert_eq!(html.stdout, "");
    let html = String::from_utf8(sandbox.read("page.html")).unwrap();
    assert_eq!(
        html.matches("The source of 1 file was not found").count(),
        1
    );
    assert!(
        !html.contains("<div class=\"code\">") && html.contains("<code>classify</code>"),
        "{html}"
    );
}

#[test]
fn without_lines_a_page_has_functions_and_operators() {
    let sandbox = Sandbox::new();
    sandbox.wasm(
        "app.wasm",
        r#"(module
          (func $"<b>&\e2\80\ae" (param i32) (if (local.get 0) (then nop)))
          (func $never nop)
          (func (export "_start") (call 0 (i32.const 1)) (call 0 (i32.const 2))))"#,
    );
    sandbox.ok("record app.wasm");
    let html = sandbox.ok("profile app.aft --format html").stdout;
    assert!(html.contains(
        "No source line is known: the module has no debug information; compile it with -g."
    ));
    assert!(html.contains("&lt;b&gt;&amp;\\u{202e}"), "{html}");
    assert!(html.contains("½</i> 1/2 <small>2 : 0</small>"), "{html}");
    let page = Page::of(&html);
    assert_eq!(page.tiles["Functions"], (2, 3));
    assert_eq!(page.tiles["Branches"], (1, 2));
    assert_eq!(page.functions["never"], [(0, 0)]);
    assert_eq!(page.functions["_start"], [(1, 4)]);
}
