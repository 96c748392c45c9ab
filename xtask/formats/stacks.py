"""Stacks and graphs: callgrind, pprof, collapsed stacks, DOT."""

import json
import os
import re
from collections import Counter, defaultdict
from xml.etree import ElementTree

from facts import Skip, Wrong, positive, said, same


def callgrind(run):
    """Totals, own and inclusive blocks, and the number of calls."""
    file = run.export("callgrind", "callgrind", "--no-inlined")
    own, total = annotated(run, file, run.functions())
    same("blocks", total, run.blocks)
    compared = same("own blocks", own, run.own())
    theirs, _ = annotated(run, file, run.functions(), "--inclusive=yes")
    ours = run.inclusive()
    compared += same("inclusive blocks", {name: theirs.get(name) for name in ours}, ours)
    calls = Counter()
    for callee, count in re.findall(r" > +(.*) \(([\d,]+)x\) ", annotate(run, file, "--tree=calling")):
        calls[named(callee, run.functions())] += int(count.replace(",", ""))
    compared += same("calls", dict(calls), run.calls())
    return f"{run.blocks} blocks, {compared} facts of functions"


def callgrind_inlined(run):
    file = run.export("callgrind", "callgrind")
    own, _ = run.stacks()
    theirs, total = annotated(run, file, own)
    same("blocks", total, run.blocks)
    return f"{same('own blocks', theirs, own)} functions"


def callgrind_profile(run):
    file = run.file("profile", "callgrind", "callgrind", "--code", "all")
    ours = run.instructions()
    own, total = annotated(run, file, ours)
    same("instructions", total, run.json("profile", "--by", "function")["totals"]["instructions"])
    return f"{total} instructions, {same('instructions', own, ours)} functions"


def annotate(run, file, *options):
    # Elsewhere: it shortens paths in the folder where it runs.
    os.makedirs(elsewhere := os.path.join(run.out, "elsewhere"), exist_ok=True)
    return said("callgrind_annotate", "--auto=no", "--threshold=100", *options, file, folder=elsewhere)


def annotated(run, file, names, *options):
    """By function, its costs, and that of the whole program."""
    costs, total = Counter(), None
    for line in annotate(run, file, *options).splitlines():
        if found := re.match(r"\s*([\d,]+) +\([ \d.]+%\)  (.*)", line):
            cost = int(found[1].replace(",", ""))
            if found[2] == "PROGRAM TOTALS":
                total = cost
            elif not found[2].endswith(":[host]"):
                name = named(found[2], names)
                # A function has a row for each file that its lines are in. Own costs add up; the
                # inclusive cost is in the row of its own file, and other rows have a part of it.
                costs[name] = max(costs[name], cost) if "--inclusive=yes" in options else costs[name] + cost
    return positive(costs), total


def named(text, names):
    """The function's name in `file:name`: both may have colons."""
    at = [text[i + 1 :] for i, letter in enumerate(text) if letter == ":"]
    return next((name for name in at if name in names), text)


def pprof(run):
    """Go's tool: own and cumulative blocks."""
    file = run.export("pprof", "pb.gz", "--no-inlined")
    flat, cum = topped(file)
    same("own blocks", positive(flat), run.own())
    ours = run.inclusive()
    compared = same("cumulative blocks", {name: cum.get(name) for name in ours}, ours)
    return f"{compared} functions"


def pprof_inlined(run):
    flat, cum = topped(run.export("pprof", "pb.gz"))
    own, inclusive = run.stacks()
    same("own blocks", positive(flat), positive(own))
    return f"{same('cumulative blocks', cum, inclusive)} functions"


def pprof_profile(run):
    """Instructions: the functions' code is that which they have in common, so inlined code counts for the functions around it, too."""
    flat, cum = topped(run.file("profile", "pprof", "pb.gz", "--code", "all"))
    same("instructions", sum(flat.values()), sum(run.instructions().values()))
    ours = {name: all for name, all in run.instructions().items() if name not in topped.inlined}
    return f"{same('instructions', {name: cum.get(name) for name in ours}, ours)} functions"


def topped(file):
    options = ["-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-symbolize=none"]
    try:
        text = said("go", "tool", "pprof", *options, file)
    except Wrong as why:
        if "no such tool" in str(why):
            raise Skip("this Go has no tool pprof") from None
        raise
    flat, cum, topped.inlined = defaultdict(int), defaultdict(int), set()
    for line in text.splitlines():
        if found := re.match(r"\s*(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% +(.*)", line):
            name = found[3]
            for inlined in (" (inline)", " (partial-inline)"):
                if name.endswith(inlined):
                    name = name.removesuffix(inlined)
                    topped.inlined.add(name)
            flat[name] += int(found[1])
            cum[name] += int(found[2])
    return dict(flat), dict(cum)


def pprof_decoder(run):
    """npm's decoder of profile.proto."""
    if not os.path.isdir(os.path.join(run.folder, "npm/node_modules/pprof-format")):
        raise Skip("npm's pprof-format is not installed")
    file = run.export("pprof", "pb.gz", "--no-inlined")
    read = json.loads(said("node", "pprof.mjs", file, folder=os.path.join(run.folder, "npm")))
    same("unit", read["types"], ["blocks count"])
    same("own blocks", positive(read["own"]), run.own())
    ours = run.inclusive()
    compared = same("inclusive blocks", {name: read["inclusive"].get(name) for name in ours}, ours)
    return f"{compared} functions, {read['samples']} samples"


def collapsed(run):
    """inferno's flame graph: what is left of each box is the function's own."""
    tool = os.path.join(run.folder, "inferno/bin/inferno-flamegraph")
    if not os.path.exists(tool):
        raise Skip("crates.io's inferno is not installed")
    compared = 0
    for options, ours in [(["--no-inlined"], run.own()), ([], run.stacks()[0])]:
        svg = said(tool, "--minwidth", "0", run.export("collapsed", "collapsed", *options))
        boxes = []
        for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
            title, rect = (group.find("{http://www.w3.org/2000/svg}" + tag) for tag in ("title", "rect"))
            if title is None or rect is None or rect.get("y") is None:
                continue
            name, blocks = re.fullmatch(r"(.*) \(([\d,]+) (?:samples), [\d.]+%\)", title.text).groups()
            at = int(rect.get("{http://github.com/jonhoo/inferno}x"))
            boxes.append((float(rect.get("y")), at, int(blocks.replace(",", "")), name))
        boxes.sort(key=lambda box: (-box[0], box[1]))
        same("blocks", boxes[0][2:], (run.blocks, "all"))
        compared += same("own blocks", own_of(boxes), ours)
    return f"{run.blocks} blocks, {compared} facts of functions"


def own_of(boxes):
    """From boxes of a flame graph, the lowest first, by name what no box above them covers."""
    levels = defaultdict(list)
    for y, at, width, name in boxes:
        levels[y].append((at, width, name))
    own, rows = Counter(), [levels[y] for y in sorted(levels, reverse=True)]
    for row, above in zip(rows, rows[1:] + [[]]):
        for at, width, name in row:
            covered = sum(w for x, w, _ in above if at <= x < at + width)
            own[name] += width - covered
    del own["all"]
    return positive(own)


def dot(run):
    """Graphviz: the vertices' own blocks and the calls on edges."""
    text = said("dot", "-Tjson0", run.export("dot", "dot", "--no-inlined"))
    graph = json.loads(text)
    own, calls, names = Counter(), Counter(), {}
    for vertex in graph["objects"]:
        name, _, rest = vertex["label"].rpartition("\\n")[0].rpartition("\\n")[0], None, vertex["label"]
        names[vertex["_gvid"]] = name
        own[name] += int(re.search(r"itself ([\d,]+)", rest)[1].replace(",", ""))
    for edge in graph["edges"]:
        calls[names[edge["head"]]] += int(edge["label"].replace(",", ""))
    same("own blocks", positive(own), run.own())
    return f"{same('calls', dict(calls), run.calls())} functions"
