"""Calls over time: Perfetto, Firefox Profiler. And speedscope, which opens most of these formats."""

import json
import os
import shutil
import subprocess
import time
from collections import Counter

from facts import Skip, Wrong, positive, said, same


def npm(run, package):
    """The folder of npm's packages, if it has this one."""
    folder = os.path.join(run.folder, "npm")
    if not os.path.isdir(os.path.join(folder, "node_modules", package)):
        raise Skip(f"npm's {package} is not installed")
    return folder


def perfetto(run):
    """The trace processor, in SQL."""
    try:
        from perfetto.trace_processor import TraceProcessor
    except ImportError:
        raise Skip("PyPI's perfetto is not installed") from None
    try:
        processor = TraceProcessor(trace=run.export("perfetto", "json"))
    except (subprocess.CalledProcessError, OSError) as error:
        why = type(error).__name__
        raise Skip(f"PyPI's perfetto cannot download its trace processor here ({why})") from None
    with processor:
        rows = list(processor.query("select name, count(*) as n, sum(dur) as dur from slice group by name"))
        same("calls", {row.name: row.n for row in rows}, run.calls())
        [all] = processor.query("select sum(dur) / 1000 as blocks from slice where depth = 0")
        same("blocks", all.blocks, run.blocks)
    return f"{sum(run.calls().values())} slices of {len(rows)} functions"


def perfetto_devtools(run):
    """The engine of Chrome's DevTools, whose format it is."""
    folder = npm(run, "@paulirish/trace_engine")
    file = run.export("perfetto", "json")
    read = json.loads(said("node", "trace.mjs", file, folder=folder))
    same("calls", read["calls"], run.calls())
    same("own blocks", positive(read["own"]), run.own())
    same("blocks", read["total"], run.blocks)
    return f"{sum(run.calls().values())} slices of {len(read['calls'])} functions"


def firefox(run):
    """The profiler's own command line, which is built from the code of its page."""
    folder = npm(run, "@firefox-devtools/profiler-cli")
    tool = os.path.join(folder, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
    # Its own `load` waits half a second for its server, which is too short for a busy machine.
    env = {**os.environ, "PROFILER_CLI_SESSION_DIR": os.path.join(run.out, "profiler")}
    shutil.rmtree(env["PROFILER_CLI_SESSION_DIR"], ignore_errors=True)
    os.makedirs(env["PROFILER_CLI_SESSION_DIR"])
    words = ["node", tool, "--daemon", run.export("firefox", "json"), "--session", run.name]
    ask = lambda *words: json.loads(said("node", tool, *words, "--json", "--session", run.name, env=env))
    with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(server, os.path.join(env["PROFILER_CLI_SESSION_DIR"], f"{run.name}.log"))
            samples = ask("thread", "samples")
            shown = ask("thread", "functions", "--limit", "0")
        finally:
            server.terminate()
    # What it calls `name` ends at a `!`, which it takes for the end of a library's name.
    own, inclusive = Counter(), Counter()
    for function in shown["functions"]:
        own[function["nameWithLibrary"]] += function["selfSamples"]
        inclusive[function["nameWithLibrary"]] += function["totalSamples"]
    same("samples", samples["categoryBreakdown"]["totalSamples"], run.blocks)
    same("own samples", positive(own), run.own())
    ours = run.inclusive()
    compared = same("samples", {name: inclusive[name] for name in ours}, ours)
    return f"{run.blocks} samples, {compared} functions"


def wait_for(server, log):
    """Waits until the server has read its file: a minute at most. Who asks earlier takes the session for a dead one, and removes it."""
    for _ in range(120):
        if os.path.exists(log):
            with open(log, encoding="utf-8") as text:
                if "Profile loaded successfully" in text.read():
                    return
        if server.poll() is not None:
            break
        time.sleep(0.5)
    raise Wrong("its server did not read the file")


def speedscope_schema(run):
    folder = npm(run, "speedscope")
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        raise Skip("jsonschema is not installed (apt-get install python3-jsonschema)") from None
    with open(os.path.join(folder, "node_modules/speedscope/dist/release/file-format-schema.json")) as file:
        schema = json.load(file)
    with open(run.export("speedscope", "json")) as file:
        document = json.load(file)
    for error in Draft7Validator(schema).iter_errors(document):
        raise Wrong(f"{error.json_path}: {error.message[:300]}")
    [profile] = document["profiles"]
    return f"{same('blocks', sum(profile['weights']), run.blocks)} profile"


# The formats that its importers know, and the options of each export.
IMPORTED = [
    ("speedscope", "json"),
    ("collapsed", "collapsed"),
    ("pprof", "pb.gz"),
    ("callgrind", "callgrind"),
    ("perfetto", "json"),
]


def speedscope(run):
    """Its page, in a browser."""
    folder = npm(run, "speedscope")
    if not run.browser:
        raise Skip("Chromium is not installed (apt-get install chromium)")
    files = {}
    for format, ending in IMPORTED:
        options = [] if format == "perfetto" else ["--no-inlined"]
        files[format] = run.export(format, ending, *options)
    picture = os.path.join(run.out, f"{run.name}.speedscope.png")
    words = [run.browser, picture, *files.values()]
    profiles = json.loads(said("node", "speedscope.mjs", *words, folder=folder))
    compared = 0
    for format, profile in zip(files, profiles):
        own, inclusive = Counter(), Counter()
        for name, self, all in profile["frames"]:
            own[name] += self
            inclusive[name] += all
        compared += same(f"{format}: blocks", profile["total"], run.blocks)
        if format == "callgrind":
            # It has no stacks, and speedscope guesses them.
            continue
        ours = run.inclusive()
        same(f"{format}: own blocks", positive(own), run.own())
        compared += same(f"{format}: blocks", {name: inclusive[name] for name in ours}, ours)
    return f"{len(files)} formats, {compared} facts"
