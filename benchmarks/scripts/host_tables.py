"""Tables of the benchmarks on host memory, and between nodes."""

from statistics import geometric_mean, median, quantiles

from charts import bars, lines
from samples import in_order, medians, timed, times_as_fast
from tables import cell, markdown, shown

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def memory_table(rows, cases):
    watched = [row for row in rows if "pss_peak_bytes" in row]
    if not watched:
        return ""
    body = []
    for case in cases:
        own = [row for row in watched if row["case"] == case]
        peak = max(row["pss_peak_bytes"] for row in own)
        shared = max(row["pss_shared_peak_bytes"] for row in own)
        body.append([case, f"{peak / 1e6:.0f}", f"{shared / 1e6:.0f}"])
    return "\n\n" + markdown(["all executors together", "peak PSS, MB", "of it shared, MB"], body)


def host_job(run, folder):
    rows = run["rows"]
    cases = in_order(row["case"] for row in rows)
    seconds = medians(rows, "query", "seconds")
    stages = medians(rows, "query", "stage_ms")
    (folder / "host_job.svg").write_text(
        bars(seconds, cases, "Whole queries (median, interquartile range)", "s")
    )
    body = []
    for query, by_case in seconds.items():
        body.append(
            [
                query,
                *(cell(by_case, case) for case in cases),
                shown(times_as_fast(by_case)),
                shown(times_as_fast(stages[query])),
            ]
        )
    both = [[r for r in map(times_as_fast, found.values()) if r] for found in (seconds, stages)]
    if all(both):
        means = [f"**{geometric_mean(ratios):.2f}**" for ratios in both]
        body.append(["**geometric mean**", *([""] * len(cases)), *means])
    heading = ["query", *(f"{case}, s" for case in cases), "times as fast", "shuffle stages"]
    return markdown(heading, body) + memory_table(rows, cases)


def host_memory(run, folder):
    """A pool that is smaller than the shuffles: what the executors hold is bounded by it."""
    size = run["setting"]["conf"]["spark.zerohop.pool.size"]
    pools = int(size[:-1]) * UNITS[size[-1]] * run["setting"]["executors"]
    staged = {row["query"]: row["staged_bytes"] for row in run["rows"] if "staged_bytes" in row}
    body = [
        [
            row["query"],
            f"{pools / 1e6:.0f}",
            f"{row['pss_shared_peak_bytes'] / 1e6:.0f}",
            f"{row['pss_shared_peak_bytes'] / pools:.3f}",
            f"{staged[row['query']] / 1e6:.0f}",
        ]
        for row in run["rows"]
        if "pss_peak_bytes" in row
    ]
    heading = [
        "query",
        "pools, MB",
        "peak of shared PSS, MB",
        "share of pools",
        "staged from files, MB",
    ]
    return markdown(heading, body)


def host_fifth(run, folder):
    """Pools far smaller than the shuffles, beside sort shuffle."""
    rows = [row for row in run["rows"] if row.get("iteration", 0) > 0]
    seconds = medians(run["rows"], "query", "seconds")
    body = []
    for query, by_case in seconds.items():
        ours = [row for row in rows if row["query"] == query and row["case"] == "zerohop"]
        moved = {
            path: median(row[f"{path}_bytes"] for row in ours)
            for path in ("local", "peer", "staged")
        }
        body.append(
            [
                query,
                *(cell(by_case, case) for case in ("sort", "zerohop")),
                shown(times_as_fast(by_case)),
                f"{sum(moved.values()) / 1e6:.0f}",
                f"{moved['staged'] / 1e6:.0f}",
            ]
        )
    heading = ["query", "sort, s", "zerohop, s", "times as fast", "read, MB", "of it staged, MB"]
    return markdown(heading, body)


def between(run, folder):
    """Whole jobs between two nodes, beside sort shuffle over the same link."""
    cases = in_order(row["case"] for row in run["rows"])
    seconds = medians(run["rows"], "query", "seconds")
    stages = medians(run["rows"], "query", "stage_ms")
    body = []
    for query, by_case in seconds.items():
        sent = median(row["sent_bytes"] for row in timed(run["rows"], query=query, case="zerohop"))
        body.append(
            [
                query,
                *(cell(by_case, case) for case in cases),
                shown(times_as_fast(by_case)),
                shown(times_as_fast(stages[query])),
                f"{sent / 1e6:.0f}",
            ]
        )
    means = [
        f"**{geometric_mean([times_as_fast(by_case) for by_case in found.values()]):.2f}**"
        for found in (seconds, stages)
    ]
    body.append(["**geometric mean**", *([""] * len(cases)), *means, ""])
    heading = [
        "query",
        *(f"{case}, s" for case in cases),
        "times as fast",
        "shuffle stages",
        "sent, MB",
    ]
    return markdown(heading, body)


def spill(run, folder):
    """Map outputs from memory to files, beside plain writes; ratios of each round, then their median."""
    shape = ("output_bytes", "block_bytes", "batches")
    body = []
    for wanted in in_order(tuple(row[key] for key in shape) for row in run["rows"]):
        rows = timed(run["rows"], **dict(zip(shape, wanted)))
        ours, plain = (
            {row["iteration"]: row for row in rows if row["case"] == case}
            for case in ("zerohop", "plain_write")
        )
        ratios, cpu_ratios = (
            [plain[i][field] / ours[i][field] for i in ours] for field in ("seconds", "cpu_seconds")
        )
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        rates = (median(row["gbps"] for row in case.values()) for case in (ours, plain))
        body.append(
            [
                f"{wanted[0] >> 20}",
                f"{wanted[1] >> 10}",
                f"{wanted[2]}",
                *(f"{rate:.2f}" for rate in rates),
                f"{median(ratios):.2f} ({low:.2f} to {high:.2f})",
                f"{median(cpu_ratios):.2f}",
            ]
        )
    heading = [
        "map output, MiB",
        "block in a batch, KiB",
        "batches",
        "zerohop, GB/s",
        "plain write, GB/s",
        "ratio (middle half)",
        "ratio of processor time",
    ]
    return markdown(heading, body)


def growth(run, folder):
    rows = run["rows"]
    cases = in_order(row["case"] for row in rows)
    seconds = medians(rows, "tasks", "seconds")
    (folder / "growth.svg").write_text(
        lines(
            seconds,
            cases,
            "The same bytes in ever more blocks (median)",
            "s",
            "map tasks = partitions; blocks are its square",
        )
    )
    body = [
        [
            f"{tasks:,} x {tasks:,}",
            f"{tasks * tasks:,}",
            *(cell(by_case, case) for case in cases),
            shown(times_as_fast(by_case)),
        ]
        for tasks, by_case in seconds.items()
    ]
    return markdown(
        ["map tasks x partitions", "blocks", *(f"{c}, s" for c in cases), "times as fast"], body
    )


def host_processor(run, _):
    """Seconds of executors' processors by part, and each part's share."""
    parts = {}
    for row in run["rows"]:
        parts.setdefault(row["part"], {})[row["case"]] = row["seconds"]
    cases = in_order(row["case"] for row in run["rows"])
    sums = {case: sum(found.get(case, 0) for found in parts.values()) for case in cases}
    body = [
        [
            part,
            *(f"{found.get(case, 0):.1f}" for case in cases),
            *(f"{100 * found.get(case, 0) / sums[case]:.1f} %" for case in cases),
        ]
        for part, found in parts.items()
    ]
    body.append(["**all**", *(f"{sums[case]:.1f}" for case in cases), *([""] * len(cases))])
    heading = ["part", *(f"{case}, s" for case in cases), *(f"{case}, share" for case in cases)]
    return markdown(heading, body)
