"""Opens each export in its own tool, and compares what the tool says with the command line's JSON: `check.py AFTERIMAGE FOLDER SCHEMAS BROWSER RECORDING=LINE…`."""

import sys
import time

import coverage
import documents
import stacks
import timelines
from facts import Run, Skip, Wrong

CHECKS = [
    ("lcov", "lcov --summary", coverage.lcov_summary),
    ("lcov", "genhtml", coverage.lcov_genhtml),
    ("lcov", "PyPI's lcov_cobertura", coverage.lcov_cobertura),
    ("callgrind", "callgrind_annotate", stacks.callgrind),
    ("callgrind, inlined", "callgrind_annotate", stacks.callgrind_inlined),
    ("callgrind of a profile", "callgrind_annotate", stacks.callgrind_profile),
    ("pprof", "go tool pprof", stacks.pprof),
    ("pprof, inlined", "go tool pprof", stacks.pprof_inlined),
    ("pprof of a profile", "go tool pprof", stacks.pprof_profile),
    ("pprof", "npm's pprof-format", stacks.pprof_decoder),
    ("perfetto", "Perfetto's trace processor", timelines.perfetto),
    ("perfetto", "Chrome DevTools' trace engine", timelines.perfetto_devtools),
    ("firefox", "Firefox Profiler's profiler-cli", timelines.firefox),
    ("speedscope", "speedscope's schema", timelines.speedscope_schema),
    ("stacks, callgrind and perfetto", "speedscope's page", timelines.speedscope),
    ("collapsed", "inferno-flamegraph", stacks.collapsed),
    ("dot", "Graphviz", stacks.dot),
    ("csv", "Python's csv", documents.rows),
    ("json", "jsonschema", documents.schemas),
    ("html", "html5lib", coverage.html_parser),
    ("html", "the Nu HTML checker", coverage.html_checker),
]


def main():
    tool, folder, schemas, browser, *recordings = sys.argv[1:]
    runs = []
    for recording in recordings:
        name, _, line = recording.partition("=")
        run = Run(tool, folder, name)
        run.schemas, run.browser, run.line = schemas, browser, line
        runs.append(run)
    wrong = 0
    for format, reader, check in CHECKS:
        for run in runs:
            start = time.monotonic()
            try:
                outcome = check(run)
            except Skip as why:
                print(f"SKIPPED {format} in {reader}: {why}")
                break
            except Wrong as what:
                wrong += 1
                outcome = f"WRONG {what}"
            except Exception as what:
                # What a tool prints may lack what is looked for.
                wrong += 1
                outcome = f"WRONG {type(what).__name__}: {what}"
            took = time.monotonic() - start
            print(f"{format} in {reader}, {run.name}: {outcome} ({took:.1f} s)", flush=True)
    sys.exit(wrong > 0)


main()
