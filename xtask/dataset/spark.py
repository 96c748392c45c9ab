"""Asks the questions of a page of Markdown with Spark: PyPI's pyspark, with two executors.

Each executor is a process of its own, with one core. What they answer must be the `text` block
after each `sql` block. Spark has no recursive questions of this form; those are named.

With --scale, one executor answers first, and then two. Each question is asked twice, and the shorter
time counts. It prints the seconds of each question, their sum, and the ratio.
"""

import os
import re
import sys
import time

from pyspark.sql import SparkSession

BLOCKS = re.compile(r"```sql\n(.*?)```\n\n```text\n(.*?)```", re.S)


def cells(text):
    """The lines of an answer as words, numbers rounded."""
    return [line.split() for line in text.strip().splitlines()]


def shown(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}"
    try:
        return f"{float(value):.1f}" if hasattr(value, "as_tuple") else str(value)
    except ValueError:
        return str(value)


def started(folder, executors):
    """Starts Spark, and makes the tables known."""
    builder = SparkSession.builder.master(f"local-cluster[{executors},1,1024]").appName("afterimage")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.ansi.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.executor.memory", "900m")
    # The files are much smaller than their rows, so Spark would send tables that are too large.
    builder = builder.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".parquet"):
            table = spark.read.parquet(os.path.join(folder, name))
            table.createOrReplaceTempView(name.removesuffix(".parquet"))
    for name in sorted(os.listdir(os.path.join(folder, "window=000000"))):
        table = spark.read.option("basePath", folder).parquet(os.path.join(folder, "window=*", name))
        table.createOrReplaceTempView(name.removesuffix(".parquet"))
    with open(os.path.join(folder, "views.sql"), encoding="utf-8") as views:
        places = views.read().partition("-- Where statements are.")[2]
    spark.sql(places.replace("VIEW", "TEMPORARY VIEW").rstrip().rstrip(";"))
    return spark


def answers(folder, questions, executors, times):
    """Compares all answers with the page, and returns the seconds that each question took."""
    spark = started(folder, executors)
    seconds, wrong = {}, 0
    for number, (sql, kept) in questions.items():
        for _ in range(times):
            begun = time.monotonic()
            found = spark.sql(sql.replace('"values"', "`values`"))
            rows = [found.columns] + [[shown(value) for value in row] for row in found.collect()]
            taken = time.monotonic() - begun
            seconds[number] = min(taken, seconds.get(number, taken))
        answer = [" ".join(row).split() for row in rows]
        if answer != cells(kept):
            wrong += 1
            print(f"question {number}: Spark answers\n{answer}\nand the page has\n{cells(kept)}")
    running = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    version = spark.version
    spark.stop()
    if wrong or len(questions) < 11 or running != executors:
        sys.exit(f"Spark with {running} executors: {wrong} of {len(questions)} answers differ from the page")
    print(f"spark {version} with {executors} executors answers {len(questions)} questions as DuckDB does")
    return seconds


def main():
    folder, page = (os.path.abspath(name) for name in sys.argv[1:3])
    with open(page, encoding="utf-8") as file:
        questions = dict(enumerate(BLOCKS.findall(file.read()), 1))
    for number in [number for number, (sql, _) in questions.items() if "RECURSIVE" in sql]:
        print(f"SKIPPED: question {number} is recursive, and was not asked of Spark")
        del questions[number]
    if "--scale" not in sys.argv:
        answers(folder, questions, 2, 1)
        return
    one, two = (answers(folder, questions, executors, 2) for executors in (1, 2))
    print("question  one executor, s  two executors, s  ratio")
    for number in questions:
        print(f"{number:8}  {one[number]:15.2f}  {two[number]:16.2f}  {one[number] / two[number]:5.2f}")
    one, two = sum(one.values()), sum(two.values())
    print(f"     all  {one:15.2f}  {two:16.2f}  {one / two:5.2f}")


main()
