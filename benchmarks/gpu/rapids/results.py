#!/usr/bin/env python3
"""Makes a measurement of what rapids.sh has seen, and prints it as a table.

  results.py cells COMMIT_FILE OUT.json FOLDER
  results.py check COMMIT_FILE OUT.json RESULT.json ...
  results.py bench COMMIT_FILE OUT.json BENCH.jsonl
  results.py blocks COMMIT_FILE OUT.json BENCH.jsonl
  results.py between COMMIT_FILE OUT.json BENCH.jsonl ...
  results.py form COMMIT_FILE OUT.json SPARK=BENCH.jsonl ...
  results.py checksums COMMIT_FILE OUT.json RETRY.json BENCH.jsonl
  results.py doctor COMMIT_FILE OUT.json FOLDER
  results.py demo COMMIT_FILE OUT.json BENCH.jsonl
  results.py kudo COMMIT_FILE OUT.json FOLDER
  results.py memory COMMIT_FILE OUT.json MEMORY.jsonl
  results.py neighbour COMMIT_FILE OUT.json NEIGHBOUR.jsonl
  results.py nodes COMMIT_FILE OUT.json PEERS.jsonl BENCH.jsonl RESULT.json ...
  results.py operators COMMIT_FILE OUT.json CASE=LINE_OF_OPERATORS_PY ...
  results.py pressure COMMIT_FILE OUT.json PRESSURE.jsonl
  results.py proof COMMIT_FILE OUT.json RESULT.json ...
  results.py rows COMMIT_FILE OUT.json HOST_JOB.json
  results.py faults COMMIT_FILE OUT.json JUNIT.xml ...
  results.py tax COMMIT_FILE OUT.json TAX.jsonl
  results.py tiers COMMIT_FILE OUT.json TIERS.jsonl
  results.py tpch COMMIT_FILE OUT.json TPCH.jsonl
  results.py etl COMMIT_FILE OUT.json ETL.jsonl
  results.py tpcds COMMIT_FILE OUT.json TPCDS.jsonl
  results.py session COMMIT_FILE OUT.json SESSION.jsonl
  results.py tpcds_check COMMIT_FILE OUT.json RUNS.jsonl EQUAL.jsonl
"""

import pathlib
import sys

from cells import cells
from checks import check, faults, nodes, pressure, proof, rows
from doctor import doctor
from exchanges import bench, between, blocks, checksums, demo, form, memory, neighbour, tax
from kudo import kudo
from measurement import measurement
from measurements import write
from operators_table import operators
from tiers import tiers
from tpcds import session, tpcds
from tpcds_check import tpcds_check
from tpch import etl, tpch


def main():
    kind, commit_file, out, *files = sys.argv[1:]
    name = pathlib.Path(out).stem
    whole = {
        "between": between,
        "blocks": blocks,
        "cells": cells,
        "doctor": doctor,
        "etl": etl,
        "form": form,
        "kudo": kudo,
        "neighbour": neighbour,
        "operators": operators,
        "session": session,
        "tax": tax,
        "tiers": tiers,
        "tpch": tpch,
        "tpcds": tpcds,
        "tpcds_check": tpcds_check,
    }
    if kind in whole:
        whole[kind](out, commit_file, *files)
        return
    if kind == "rows":
        rows(out, files[0])
        return
    readers = {
        "check": check,
        "proof": proof,
        "pressure": lambda found: pressure(found[0]),
        "faults": faults,
        "nodes": nodes,
        "bench": lambda found: bench(found[0]),
        "checksums": lambda found: checksums(*found),
        "memory": lambda found: memory(found[0]),
        "demo": lambda found: demo(out, found[0]),
    }
    found = readers[kind](files)
    write(out, measurement(name, commit_file, found))
    failed = sorted(
        {row["case"] for row in found if row.get("failed_tasks") and row["case"] != "off"}
    )
    if failed:
        sys.exit(f"tasks failed: {failed}")


main()
