"""Reads a data set with PyPI's duckdb, datafusion and pyarrow.

Asks the questions of a page of Markdown: each `sql` block is asked with DuckDB and with DataFusion,
and what they answer must be the `text` block after it. With --bless, DuckDB's answers are written
into the page. PyArrow reads all tables; they must be those that DuckDB reads.

With --scale, the data set is of a longer run: DuckDB's answers to the questions that are not
recursive are written into the page, and it prints how long DuckDB took.
"""

import decimal
import glob
import os
import re
import sys
import time

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BLOCKS = re.compile(r"```sql\n(.*?)```\n\n```text\n(.*?)```", re.S)


def shown(value):
    """A value as the page shows it: engines differ in how they write numbers."""
    if value is None:
        return ""
    if isinstance(value, (float, decimal.Decimal)):
        return f"{float(value):.1f}"
    return str(value)


def table(columns, rows):
    """An answer as lines of text."""
    cells = [list(columns)] + [[shown(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    number = [
        all(isinstance(row[i], (int, float, decimal.Decimal, type(None))) for row in rows)
        for i in range(len(columns))
    ]
    lines = []
    for row in cells:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, number)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


def names():
    """The tables of the data set, with whether each is in windows."""
    whole = {os.path.splitext(name)[0]: False for name in sorted(glob.glob("*.parquet"))}
    windows = sorted({os.path.basename(name) for name in glob.glob("window=*/*.parquet")})
    return whole | {os.path.splitext(name)[0]: True for name in windows}


def duck():
    connection = duckdb.connect()
    with open("views.sql", encoding="utf-8") as views:
        connection.execute(views.read())

    def ask(sql):
        found = connection.execute(sql)
        columns = [column[0] for column in found.description]
        return table(columns, found.fetchall())

    return connection, ask


def fusion():
    context = datafusion.SessionContext()
    for name, in_windows in names().items():
        if in_windows:
            context.register_listing_table(
                name,
                os.getcwd(),
                table_partition_cols=[("window", pa.string())],
                file_extension=f"/{name}.parquet",
            )
        else:
            context.register_parquet(name, f"{name}.parquet")
    with open("views.sql", encoding="utf-8") as views:
        places = views.read().partition("-- Where statements are.")[2]
    context.sql(places.replace("CREATE OR REPLACE VIEW", "CREATE VIEW").rstrip().rstrip(";"))

    def ask(sql):
        found = context.sql(sql).to_arrow_table()
        rows = [tuple(row.values()) for row in found.to_pylist()]
        return table(found.column_names, rows)

    return ask


def compare_tables(connection):
    """PyArrow and DuckDB read the same tables: the number of rows, and of each column its sum and how many are missing."""
    tables = rows = 0
    for name, in_windows in names().items():
        files = sorted(glob.glob(f"window=*/{name}.parquet")) if in_windows else [f"{name}.parquet"]
        arrow = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
        for column in arrow.column_names:
            cells = arrow[column]
            whole = pa.types.is_integer(cells.type)
            number = f'sum("{column}"::HUGEINT)' if whole else "0"
            sql = f'SELECT count(*), count(*) - count("{column}"), {number} FROM "{name}"'
            other = connection.execute(sql).fetchall()[0]
            total = pc.sum(cells.cast(pa.decimal128(38, 0))).as_py() if whole else 0
            own = (len(cells), cells.null_count, int(total or 0))
            if own != (other[0], other[1], int(other[2] or 0)):
                sys.exit(f"{name}.{column}: pyarrow reads {own}, DuckDB {other}")
        tables, rows = tables + 1, rows + len(arrow)
    print(f"pyarrow {pa.__version__} reads {tables} tables with {rows} rows as DuckDB does")


def scale(page, text, ask):
    """Writes DuckDB's answers into the page, and prints how long they took."""
    seconds = 0.0
    for sql, kept in BLOCKS.findall(text):
        if "RECURSIVE" in sql:
            continue
        begun = time.monotonic()
        answer = ask(sql)
        seconds += time.monotonic() - begun
        text = text.replace(f"```sql\n{sql}```\n\n```text\n{kept}```", f"```sql\n{sql}```\n\n```text\n{answer}```")
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"duckdb {duckdb.__version__}, one process: {seconds:.1f} s")


def main():
    folder, page = sys.argv[1:3]
    page = os.path.abspath(page)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    os.chdir(folder)
    connection, ask_duck = duck()
    if "--scale" in sys.argv:
        scale(page, text, ask_duck)
        return
    ask_fusion = fusion()
    questions = BLOCKS.findall(text)
    wrong = 0
    for number, (sql, kept) in enumerate(questions, 1):
        answer = ask_duck(sql)
        if "--bless" in sys.argv:
            text = text.replace(f"```sql\n{sql}```\n\n```text\n{kept}```", f"```sql\n{sql}```\n\n```text\n{answer}```")
            kept = answer
        for engine, found in (("DuckDB", answer), ("DataFusion", ask_fusion(sql))):
            if found != kept:
                wrong += 1
                print(f"question {number}: {engine} answers\n{found}and the page has\n{kept}")
    if "--bless" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
    if wrong or len(questions) < 12:
        sys.exit(f"{wrong} answers of {len(questions)} questions differ from {os.path.basename(page)}")
    print(
        f"duckdb {duckdb.__version__} and datafusion {datafusion.__version__} answer {len(questions)} questions as {os.path.basename(page)} does"
    )
    compare_tables(connection)


main()
