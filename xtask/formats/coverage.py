"""Coverage and lines: lcov, HTML."""

import os
import re
import shutil
from collections import Counter
from xml.etree import ElementTree

from facts import Skip, Wrong, said, same


def at_hand(run):
    """The counts of lines whose file is available: lcov leaves out the others."""
    lines = run.lines("--code", "all")
    return {at: count for at, count in lines.items() if os.path.exists(os.path.join(run.folder, at[0]))}


def lcov_summary(run):
    file = run.file("profile", "lcov", "info", "--code", "all")
    text = said("lcov", "--summary", file)
    hit, found = map(int, re.search(r"lines\.*: .*\((\d+) of (\d+) lines\)", text).groups())
    lines = at_hand(run).values()
    same("lines found", found, len(lines))
    same("lines hit", hit, sum(count > 0 for count in lines))
    return f"{hit} of {found} lines"


def lcov_genhtml(run):
    """Reads the counts beside the lines of its pages."""
    # genhtml shows sources, and those of libraries are not here.
    file = run.file("profile", "lcov", "info", "--code", "mine")
    pages = os.path.join(run.out, f"{run.name}.genhtml")
    shutil.rmtree(pages, ignore_errors=True)
    said("genhtml", "--quiet", file, "--output-directory", pages, folder=run.folder)
    seen = {}
    for folder, _, files in os.walk(pages):
        for page in files:
            if not page.endswith(".gcov.html"):
                continue
            with open(os.path.join(folder, page), encoding="utf-8") as text:
                for number, count in re.findall(
                    r'class="lineNum">\s*(\d+) </span>(?:<[^>]*>)*\s*(\d+)\s*:', text.read()
                ):
                    seen[page.removesuffix(".gcov.html"), int(number)] = int(count)
    ours = {(os.path.basename(file), line): count for (file, line), count in run.lines("--code", "mine").items()}
    return f"{same('counts of lines', seen, ours)} counts"


def lcov_cobertura(run):
    try:
        from lcov_cobertura import LcovCobertura
    except ImportError:
        raise Skip("PyPI's lcov_cobertura is not installed") from None
    with open(run.file("profile", "lcov", "info", "--code", "all"), encoding="utf-8") as file:
        # An empty base: paths stay as they are.
        xml = LcovCobertura(file.read(), base_dir="/").convert()
    seen = Counter()
    for file in ElementTree.fromstring(xml).iter("class"):
        for line in file.find("lines"):
            seen[int(line.get("number")), int(line.get("hits"))] += 1
    ours = Counter((line, count) for (_, line), count in at_hand(run).items())
    return f"{same('files that have a line and a count', dict(seen), dict(ours))} lines and counts"


def html_parser(run):
    """The page of a profile: no error of the HTML standard's parser, and each line's count."""
    try:
        import html5lib
    except ImportError:
        raise Skip("PyPI's html5lib is not installed") from None
    try:
        with open(run.file("profile", "html", "html", "--code", "mine"), encoding="utf-8") as file:
            parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
            page = parser.parse(file.read())
        with open(report(run), encoding="utf-8") as file:
            html5lib.HTMLParser(strict=True).parse(file.read())
    except html5lib.html5parser.ParseError as error:
        raise Wrong(f"no HTML: {error}") from None
    seen = {}
    for section in page.iter("section"):
        title = section.find("h2")
        for row in section.iter("tr"):
            if cells := re.fullmatch(r"f\d+L(\d+)", row.get("id") or ""):
                # A line without code has none.
                if count := re.sub(r"\D", "", "".join(row.findall("td")[1].itertext())):
                    seen["".join(title.itertext()), int(cells[1])] = int(count)
    return f"{same('counts of lines', seen, run.lines('--code', 'mine'))} counts"


def html_checker(run):
    """The checker of the W3C, which knows each element's content and each style's syntax."""
    jar = os.path.join(run.folder, "npm/node_modules/vnu-jar/build/dist/vnu.jar")
    if not os.path.exists(jar):
        raise Skip("npm's vnu-jar is not installed")
    pages = [run.file("profile", "html", "html", "--code", "mine"), report(run)]
    said("java", "-jar", jar, "--format", "gnu", *pages)
    return f"{len(pages)} pages"


def report(run):
    path = os.path.join(run.out, f"{run.name}.report.html")
    run.ask("report", "-o", path)
    return path


