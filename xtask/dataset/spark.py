"""Asks the questions of a page of Markdown with Spark: PyPI's pyspark, with two executors.

Each executor is a process of its own. What they answer must be the `text` block after each `sql`
block. Spark has no recursive questions of this form; those are named.
"""

import os
import re
import sys

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


def main():
    folder, page = (os.path.abspath(name) for name in sys.argv[1:3])
    with open(page, encoding="utf-8") as file:
        questions = BLOCKS.findall(file.read())
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("afterimage")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.ansi.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.executor.memory", "900m")
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
    wrong = asked = 0
    for number, (sql, kept) in enumerate(questions, 1):
        if "RECURSIVE" in sql:
            print(f"SKIPPED: question {number} is recursive, and was not asked of Spark")
            continue
        found = spark.sql(sql.replace('"values"', "`values`"))
        rows = [found.columns] + [[shown(value) for value in row] for row in found.collect()]
        answer = [" ".join(row).split() for row in rows]
        asked += 1
        if answer != cells(kept):
            wrong += 1
            print(f"question {number}: Spark answers\n{answer}\nand the page has\n{cells(kept)}")
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    version = spark.version
    spark.stop()
    if wrong or asked < 11 or executors != 2:
        sys.exit(f"Spark with {executors} executors: {wrong} of {asked} answers differ from the page")
    print(f"spark {version} with {executors} executors answers {asked} questions as DuckDB does")


main()
