//! Writes the common parts of HTML pages: the frame, the colours, tables of source, and escaped
//! program text.
//!
//! A page can be opened from disk. It is self-contained: it has no script, and loads nothing.

mod counted;

use std::io::Write;

pub use counted::{CountedBranch, CountedLine, LEGEND, begin_counted, count};

use crate::PresentError;
use crate::plain::plain;

/// The content security policy. It prevents the page from loading or running anything, whatever a
/// name or a line of source contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The colours, for light and dark mode, and the style of all pages.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --soft: #636c76; --line: #d8dee4; --panel: #f6f8fa; --link: #0b5cad;
  --good: #2da44e; --bad: #c9252d; --bad-page: #ffeceb; --some: #9a6700; --some-page: #fff6d6; --at-page: #ffd9a8 }
@media (prefers-color-scheme: dark) { :root { --page: #111418; --ink: #d7dce2; --soft: #929ba5; --line: #2b3138; --panel: #191d23; --link: #7cb7ff;
  --good: #3fb950; --bad: #ff7b72; --bad-page: #3a1d1f; --some: #e3b341; --some-page: #352c14; --at-page: #5c3d12 } }
* { box-sizing: border-box }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 2rem 1.5rem 4rem; color: var(--ink); background: var(--page) }
h1 { font-size: 1.35rem; font-weight: 650; line-height: 1.3; margin: 0 0 .25rem; overflow-wrap: anywhere } h1.sentence { font-size: 1.1rem }
h2 { font-size: 1rem; font-weight: 650; margin: 2.5rem 0 .5rem; overflow-wrap: anywhere }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } th { font-weight: 600; text-align: left; color: var(--soft) }
.code { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px }
.code table { font: 12.5px/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; width: 100%; margin: .3rem 0 }
.code td { padding: 0 .7rem; white-space: pre; vertical-align: top } .code td:last-child { width: 100% }
.code th { padding: .1rem .7rem .3rem; font-weight: 400 }
.soft, td.soft { color: var(--soft) } p.soft { margin: .4rem 0 } code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .92em }
.list { width: 100% } .scroll { overflow-x: auto }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; color: var(--soft); margin: 1rem 0 0; padding: 0; list-style: none }
.x { color: var(--bad); font-weight: 700; font-style: normal } .h { color: var(--some); font-weight: 700; font-style: normal }
.code tr.hit td:first-child { box-shadow: inset 3px 0 var(--good) } .code tr.part td:first-child { box-shadow: inset 3px 0 var(--some) } .code tr.miss td:first-child { box-shadow: inset 3px 0 var(--bad) }
.code tr.miss { background: var(--bad-page) } .code tr.part td.b { background: var(--some-page) } .code tr.hit td.c, .code tr.part td.c, .code tr.miss td.c, .code td.b { color: var(--ink) } .code td.b { text-align: left } .code td.b small { color: var(--soft); font-size: 1em }
tr:target { outline: 2px solid var(--link); outline-offset: -2px }
td.n, th.n { text-align: right } .code td.n { color: var(--soft); user-select: none }
";

/// Writes the beginning of a page. `style` is for this page only.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn begin(out: &mut dyn Write, title: &str, style: &str) -> Result<(), PresentError> {
    Ok(writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title><style>{STYLE}{style}</style></head>\n<body>",
        escaped(title)
    )?)
}

/// Writes the end of a page.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn end(out: &mut dyn Write) -> Result<(), PresentError> {
    Ok(writeln!(out, "</body></html>")?)
}

/// Begins a table of source: columns of numbers, and the text.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn begin_source(out: &mut dyn Write, columns: &[&str]) -> Result<(), PresentError> {
    write!(out, "<div class=\"code\"><table><tr>")?;
    for column in columns {
        write!(out, "<th class=\"n\">{column}</th>")?;
    }
    Ok(writeln!(out, "<th></th></tr>")?)
}

/// Ends a table of source.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn end_source(out: &mut dyn Write) -> Result<(), PresentError> {
    Ok(writeln!(out, "</table></div>")?)
}

/// Escapes program text for a page, for an element or a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            escaped("</td><script>a('b', \"c\")&\u{202e}\n"),
            "&lt;/td&gt;&lt;script&gt;a(&#39;b&#39;, &quot;c&quot;)&amp;\\u{202e}\\n"
        );
    }
}
