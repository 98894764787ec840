"""The first table of the page: what each benchmark comes to, on what, and of which code."""

import json
from statistics import geometric_mean, median

from provenance import age_of
from samples import in_order, medians, times_as_fast, timed
from tables import markdown


def host_of(run):
    host = run["host"]
    if "gpu" not in host:
        return f"{host['cpu_cores']} cores"
    gpus = host["gpu"].removeprefix("NVIDIA ").split(" ")[0]
    return f"{host['gpus']} x {gpus}" + (
        f", {host['executors_per_gpu']} executors each"
        if host.get("executors_per_gpu", 1) > 1
        else ""
    )


def whole_jobs(run):
    """{query: times as fast} beside the faster sort shuffle."""
    found = medians(run["rows"], "query", "seconds")
    return {query: times_as_fast(cases) for query, cases in found.items()}


def most_blocks(run):
    """The same of the largest shuffle."""
    found = medians(run["rows"], "tasks", "seconds")
    most = max(found)
    return {f"{most:,} x {most:,}": times_as_fast(found[most])}


def whole_queries(run):
    """{query: times as fast} beside sort shuffle, of rows that are medians."""
    cases = {}
    for row in run["rows"]:
        if "seconds" in row:
            cases.setdefault(row["query"], {})[row["case"]] = row["seconds"]
    return {
        query: found["sort"] / found["zerohop"]
        for query, found in cases.items()
        if {"sort", "zerohop"} <= set(found)
    }


def exchanges(ours, theirs, wanted=lambda row: True):
    """{query and shape: times as fast} beside the faster of others' cases, by whole queries."""

    def values(run):
        found = {}
        for row in timed(run["rows"]):
            if wanted(row):
                shape = f"{row['query']}, {row['maps']} x {row['partitions']:,}"
                found.setdefault(shape, {}).setdefault(row["case"], []).append(row["seconds"])
        return {
            shape: min(median(cases[case]) for case in theirs if case in cases)
            / median(cases[ours])
            for shape, cases in found.items()
            if ours in cases and any(case in cases for case in theirs)
        }

    return values


def tpcds(partitions):
    def values(run):
        found = {}
        for row in run["rows"]:
            if row["partitions"] == partitions and "seconds" in row:
                found.setdefault(row["query"], {})[row["case"]] = row["seconds"]
        return {
            query: cases["multithreaded"] / cases["zerohop"]
            for query, cases in found.items()
            if {"multithreaded", "zerohop"} <= set(cases)
        }

    return values


def tpch(run):
    return {
        query: min(cell["seconds"] for case, cell in cases.items() if case != "zerohop")
        / cases["zerohop"]["seconds"]
        for query, cases in run["summary"]["queries"].items()
        if len(cases) > 1
    }


BETWEEN = exchanges("zerohop+between", ("multithreaded+between", "multithreaded+between+compress"))
NO_PEERS = exchanges("zerohop+nopeers", ("multithreaded+nopeers", "multithreaded+nopeers+compress"))
ENCRYPTED = exchanges("zerohop+between+crypto", ("multithreaded+between+crypto",))
SPARK = "sort shuffle"


def written(run):
    """Without the query that reads what was written."""
    return {query: ratio for query, ratio in tpch(run).items() if query != "rows"}


FILES = "RAPIDS' MULTITHREADED"
# The workload, its file, how its ratios are found, and beside what.
LINES = (
    ("TPC-DS, scale 10, 2 GPUs, Spark 4.2", "gpu_tpcds_spark42", tpcds(200), FILES),
    ("TPC-DS, scale 10, 1 GPU, Spark 4.2", "gpu_tpcds_spark42_one", tpcds(200), FILES),
    ("TPC-DS, scale 10, 1 GPU", "gpu_tpcds_one", tpcds(200), FILES),
    ("TPC-DS, scale 10, 2 GPUs", "gpu_tpcds_two", tpcds(200), FILES),
    ("TPC-DS, scale 10, 200 partitions", "gpu_tpcds_partitions", tpcds(200), FILES),
    ("TPC-DS, scale 10, 2,000 partitions", "gpu_tpcds_partitions", tpcds(2000), FILES),
    ("TPC-DS, scale 100, 2 GPUs", "gpu_tpcds_100", tpcds(200), FILES),
    ("TPC-DS, scale 100, 1 GPU", "gpu_tpcds_100_one", tpcds(200), FILES),
    ("TPC-H, scale 100, 2 GPUs", "gpu_outofcore", tpch, FILES),
    ("Parquet tables written, scale 100, 2 GPUs", "gpu_etl", written, FILES),
    (
        "RAPIDS' exchanges",
        "gpu_blocks",
        exchanges("zerohop", ("multithreaded",)),
        FILES,
    ),
    ("the same, GPUs without peer access", "gpu_nopeers", NO_PEERS, FILES),
    ("RAPIDS' exchanges, as if on two nodes", "gpu_between_two", BETWEEN, FILES),
    ("the same, 2,000 partitions", "gpu_between_two_2000", BETWEEN, FILES),
    ("the same, encrypted by Spark", "gpu_between_two_crypto", ENCRYPTED, FILES),
    ("the same, two executors of one GPU", "gpu_between_one", BETWEEN, FILES),
    ("TPC-H, no broadcast joins", "host_job", whole_jobs, SPARK),
    ("TPC-DS, scale 1", "host_tpcds", whole_queries, SPARK),
    ("TPC-H between two nodes", "host_between", whole_jobs, SPARK),
    ("the same, 1 Gb/s", "host_between_gigabit", whole_jobs, SPARK),
    ("512 MiB in 9,000,000 blocks", "growth", most_blocks, SPARK),
)


def headline(folder):
    body, ages = [], []
    for name, bench, values, beside in LINES:
        run = json.loads((folder / f"{bench}.json").read_text())
        found = values(run)
        slowest = min(found, key=found.get)
        age = age_of(bench, run)
        ages += [age] if age else []
        body.append(
            [
                f"{name}{' (*)' if age else ''}",
                f"{geometric_mean(found.values()):.2f}",
                f"{found[slowest]:.2f} ({slowest.removeprefix('tpcds:')})",
                str(len(found)),
                beside,
                host_of(run),
                f"[{run['commit'][:7]}](measurements/{bench}.json), {run['date']}",
            ]
        )
    heading = [
        "workload",
        "times as fast",
        "slowest",
        "queries",
        "beside",
        "on",
        "commit",
    ]
    notes = "".join(f"\n\n(*){age}" for age in in_order(ages))
    return markdown(heading, body) + notes
