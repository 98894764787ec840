#!/usr/bin/env python3
"""Writes TPC-DS' tables as Parquet by the TPC's own generator, a process for each processor.

  tpcds_tables.py TOOLS SCALE FOLDER [PROCESSES]

TOOLS is the folder tools of the TPC's kit, built by whoever runs this: it has dsdgen, tpcds.idx and
tpcds.sql, and is no part of this project. Needs pyarrow. On 32 processors
tables of scale 100 take 98 s. io.zerohop.workload.TpcdsData, which needs neither, writes the same
columns, those of scale 10 in 167 s.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pyarrow
import pyarrow.csv
import pyarrow.parquet

LIMIT_SECONDS = 300
# What dsdgen draws in parts, and what comes with it.
DRAWN = {
    "store_sales": ("store_sales", "store_returns"),
    "catalog_sales": ("catalog_sales", "catalog_returns"),
    "web_sales": ("web_sales", "web_returns"),
    "inventory": ("inventory",),
    "customer": ("customer",),
    "customer_address": ("customer_address",),
    "customer_demographics": ("customer_demographics",),
}
# By how much fewer parts these are drawn in: they have fewer rows.
FEWER = {"inventory": 4, "customer": 8, "customer_address": 16, "customer_demographics": 32}
# Where Spark's own tests, and so TpcdsData, have it otherwise than the statements do.
RENAMED = {"s_tax_precentage": "s_tax_percentage"}
RETYPED = {"c_last_review_date": "integer"}


def schemas(ddl):
    """The columns of each table, as the specification's statements have them."""
    found = {}
    for name, body in re.findall(r"(?s)create table (\w+)\s*\((.*?)\n\);", ddl):
        columns = re.findall(r"(?m)^\s+(\w+)\s+(integer|date|time|decimal|char|varchar)(\S*)", body)
        found[name] = pyarrow.schema(
            [
                (RENAMED.get(column, column), of(RETYPED.get(column, kind), size))
                for column, kind, size in columns
            ]
        )
    return found


def of(kind, size):
    if kind == "integer":
        return pyarrow.int32()
    if kind == "date":
        return pyarrow.date32()
    if kind == "decimal":
        return pyarrow.decimal128(*map(int, size.strip("(),").split(",")))
    return pyarrow.string()


def draw(tools, scale, folder, columns, table, child, children):
    """One part of a table, and of what is drawn with it, from text to Parquet."""
    scratch = folder / f".{table}-{child}"
    scratch.mkdir(parents=True)
    part = ["-PARALLEL", str(children), "-CHILD", str(child)] if children > 1 else []
    command = ["./dsdgen", "-SCALE", scale, "-TABLE", table, "-DIR", str(scratch), *part]
    subprocess.run(
        [*command, "-TERMINATE", "N", "-FORCE", "Y", "-QUIET", "Y"],
        cwd=tools,
        check=True,
        timeout=LIMIT_SECONDS,
    )
    for text in scratch.glob("*.dat"):
        name = re.sub(r"(_\d+_\d+)?\.dat$", "", text.name)
        convert(text, columns[name], folder / name / f"part-{child:05d}.snappy.parquet")
    shutil.rmtree(scratch)


def convert(text, schema, file):
    table = pyarrow.csv.read_csv(
        text,
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, column_names=schema.names, encoding="latin1"
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter="|", quote_char=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=schema, null_values=[""], strings_can_be_null=True
        ),
    )
    file.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(table, file, store_decimal_as_integer=True)


def main():
    tools, scale, folder, *rest = sys.argv[1:]
    tools, folder = pathlib.Path(tools).resolve(), pathlib.Path(folder).resolve()
    processes = int(rest[0]) if rest else len(os.sched_getaffinity(0))
    columns = schemas((tools / "tpcds.sql").read_text())
    along = {also for group in DRAWN.values() for also in group[1:]}
    small = sorted(set(columns) - set(DRAWN) - along - {"dbgen_version"})
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        parts = []
        for table in [*DRAWN, *small]:
            some = 4 * processes // FEWER.get(table, 1) if float(scale) >= 1 else 1
            children = max(1, some) if table in DRAWN else 1
            parts += [
                pool.submit(draw, tools, scale, folder, columns, table, child, children)
                for child in range(1, children + 1)
            ]
        for part in parts:
            part.result()
    print(f"{sum(file.stat().st_size for file in folder.glob('*/*')) >> 20} MB in {folder}")


main()
