#!/usr/bin/env python3
"""Draws docs/measurements/*.json: one SVG per benchmark and the tables of docs/benchmarks.md.

Every number in the tables comes from the files, ratios included. Needs git and Python 3.10.
Usage: plot.py [FOLDER_OF_JSON [PAGE]]
"""

import json
import sys
from pathlib import Path

from again_tables import gpu_blocks_again, host_again
from copy_tables import alltoall, gather, host_link, signal
from exchange_tables import exchanges, gpu_memory, tax
from headline_tables import headline
from host_tables import (
    between,
    growth,
    host_fifth,
    host_job,
    host_memory,
    host_processor,
    spill,
)
from provenance import age_of, gpu_provenance, provenance
from query_tables import gpu_tpcds, gpu_tpcds_check, host_tpcds, operators, tpch

DRAWINGS = {
    "host_job": host_job,
    "host_memory": host_memory,
    "host_fifth": host_fifth,
    "host_between": between,
    "host_between_gigabit": between,
    "growth": growth,
    "spill": spill,
    "gather": gather,
    "alltoall": alltoall,
    "signal": signal,
    "gpu_exchange": exchanges,
    "gpu_exchange_one": exchanges,
    "gpu_exchange_scale": exchanges,
    "gpu_blocks": exchanges,
    "gpu_blocks_one": exchanges,
    "gpu_blocks_shared": exchanges,
    "gpu_tax": tax,
    "host_tpcds": host_tpcds,
    "host_tpcds_slowest": host_tpcds,
    "host_processor": host_processor,
    "gpu_tpcds": gpu_tpcds,
    "gpu_tpcds_one": gpu_tpcds,
    "gpu_tpcds_spark42_one": gpu_tpcds,
    "gpu_tpcds_two": gpu_tpcds,
    "gpu_tpcds_fat": gpu_tpcds,
    "gpu_tpcds_partitions": gpu_tpcds,
    "gpu_tpcds_100": gpu_tpcds,
    "gpu_tpcds_100_one": gpu_tpcds,
    "gpu_operators": operators,
    "gpu_tpcds_check": gpu_tpcds_check,
    "gpu_tpch": tpch,
    "gpu_outofcore": tpch,
    "gpu_etl": tpch,
    "gpu_memory": gpu_memory,
    "host_link": host_link,
    "host_again": host_again,
    "gpu_blocks_one_again": gpu_blocks_again,
    "gpu_tax_one": tax,
}


def replace_section(page, bench, content):
    begin, end = f"<!-- {bench}:begin -->", f"<!-- {bench}:end -->"
    if begin not in page or end not in page:
        raise SystemExit(f"the page lacks the lines {begin} and {end}")
    before, after = page.split(begin)[0], page.split(end)[1]
    return f"{before}{begin}\n{content}\n{end}{after}"


def main():
    docs = Path(__file__).resolve().parent / "../../docs"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else docs / "measurements"
    page_file = Path(sys.argv[2]) if len(sys.argv) > 2 else docs / "benchmarks.md"
    page = page_file.read_text()
    for bench, draw in DRAWINGS.items():
        source = folder / f"{bench}.json"
        if not source.exists():
            continue
        run = json.loads(source.read_text())
        table = draw(run, folder)
        plot = (
            f"![{bench}](measurements/{bench}.svg)\n\n"
            if (folder / f"{bench}.svg").exists()
            else ""
        )
        origin = gpu_provenance(run) if "gpu" in run["host"] else provenance(run)
        content = f"{plot}{table}\n\n{origin}{age_of(bench, run)}"
        page = replace_section(page, bench, content)
        print(f"drew {bench} from {source}")
    page = replace_section(page, "performance-headline", headline(folder))
    page_file.write_text(page)


if __name__ == "__main__":
    main()
