"""What the command line's JSON says about a run, and how what a tool says is compared with it."""

import json
import os
import subprocess
from collections import Counter
from functools import cache


class Wrong(Exception):
    """A tool and the command line disagree."""


class Skip(Exception):
    """A tool is not here; the text says which, and why."""


def said(*words, folder=None, env=None):
    """What a program prints; it is wrong if it fails."""
    try:
        ran = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        raise Skip(f"{os.path.basename(words[0])} is not installed") from None
    if ran.returncode:
        last = ran.stderr.decode(errors="replace").strip()[-600:]
        raise Wrong(f"{os.path.basename(words[0])} ended with {ran.returncode}: {last}")
    return ran.stdout.decode()


def same(what, theirs, ours):
    """Compares two values, or two dictionaries key by key; returns how many were compared."""
    if not isinstance(ours, dict):
        if theirs != ours:
            raise Wrong(f"{what}: the tool says {theirs}, the command line {ours}")
        return 1
    if not ours:
        raise Wrong(f"{what}: nothing to compare")
    lines = [
        f"\n    {key}: the tool says {theirs.get(key)}, the command line {ours.get(key)}"
        for key in sorted(set(theirs) | set(ours), key=str)
        if theirs.get(key) != ours.get(key)
    ]
    if lines:
        raise Wrong(f"{what}: {len(lines)} of {len(ours)} differ" + "".join(lines[:5]))
    return len(ours)


def positive(numbers):
    return {key: number for key, number in numbers.items() if number}


class Run:
    """A recording, what the command line says about it, and its exports."""

    def __init__(self, tool, folder, name):
        self.tool, self.folder, self.name = tool, folder, name
        self.out = os.path.join(folder, "exports")
        os.makedirs(self.out, exist_ok=True)

    def ask(self, command, *options):
        return said(self.tool, command, f"{self.name}.aft", *options, folder=self.folder)

    @cache
    def json(self, command, *options):
        return json.loads(self.ask(command, *options, "--format", "json"))

    @cache
    def file(self, command, format, ending, *options):
        """A report as a file that has the ending by which its tool knows it."""
        words = "".join(option.strip("-").replace("%", "") + "." for option in options)
        path = os.path.join(self.out, f"{self.name}.{command}.{format}.{words}{ending}")
        self.ask(command, "--format", format, *options, "-o", path)
        return path

    def export(self, format, ending, *options):
        return self.file("export", format, ending, "--min", "0", "--code", "all", *options)

    @property
    def blocks(self):
        return self.json("calls")["blocks"]

    @cache
    def functions(self):
        """By name: calls, own and inclusive blocks. Functions of one name are added up; their inclusive blocks are no sum, and `None`."""
        all = {}
        for row in self.json("calls")["functions"]:
            name = row["function"]["name"]
            calls, own, _ = all.get(name, (0, 0, 0))
            inclusive = None if name in all else row["inclusive"]
            all[name] = (calls + row["calls"], own + row["own"], inclusive)
        return all

    def calls(self):
        return {name: calls for name, (calls, _, _) in self.functions().items()}

    def own(self):
        return positive({name: own for name, (_, own, _) in self.functions().items()})

    def inclusive(self):
        return positive({name: all for name, (_, _, all) in self.functions().items()})

    def instructions(self):
        rows = self.json("profile", "--by", "function", "--code", "all")["rows"]
        all = Counter()
        for row in rows:
            all[row["function"]["name"]] += row["instructions"]
        return positive(all)

    def lines(self, *options):
        """By file and line, how often it was executed."""
        rows = self.json("profile", "--by", "line", *options)["rows"]
        return {(row["source"]["file"], row["source"]["line"]): row["count"] for row in rows}

    @cache
    def stacks(self):
        """By name, own and inclusive blocks with inlined functions: read from the collapsed stacks."""
        own, inclusive = Counter(), Counter()
        with open(self.export("collapsed", "collapsed"), encoding="utf-8") as lines:
            for line in lines:
                stack, _, blocks = line.rstrip("\n").rpartition(" ")
                stack = stack.split(";")
                own[stack[-1]] += int(blocks)
                for name in set(stack):
                    inclusive[name] += int(blocks)
        return dict(own), dict(inclusive)
