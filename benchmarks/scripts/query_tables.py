"""Tables of TPC-DS' and TPC-H's queries."""

import itertools
from statistics import geometric_mean

from samples import in_order
from tables import markdown


def seconds(row):
    if not row or "seconds" not in row:
        return "-"
    spread = f" ± {100 * row['spread']:.0f} %" if row["runs"] > 1 else ""
    return f"{row['seconds']:.2f} s{spread}"


def by_query(rows):
    found = {}
    for row in rows:
        found.setdefault(row["query"].replace("tpcds:", ""), {})[row["case"]] = row
    return found


def share(ratio, queries):
    """How many queries, their geometric mean, and the ends of their ratios; None if there are none."""
    values = [ratio[query] for query in queries]
    if not values:
        return None
    return [
        str(len(values)),
        f"{geometric_mean(values):.3f}",
        f"{min(values):.2f}",
        f"{max(values):.2f}",
    ]


def host_tpcds(run, _):
    """Sort shuffle's medians over Zerohop's, the slowest query first, and what they come to."""
    summary = run["summary"][0]
    equal = f"{summary['equal']} of {summary['asked']} queries return sort shuffle's rows"
    if summary["geometric_mean"] is None:
        return f"{equal}. Nothing was timed in this run."
    timed = {
        query: cases
        for query, cases in by_query(run["rows"]).items()
        if all("seconds" in cases.get(case, {}) for case in ("zerohop", "sort"))
    }
    ratio = {
        query: cases["sort"]["seconds"] / cases["zerohop"]["seconds"]
        for query, cases in timed.items()
    }
    order = sorted(ratio, key=ratio.get)
    body = [
        [
            query,
            seconds(timed[query]["zerohop"]),
            seconds(timed[query]["sort"]),
            f"{ratio[query]:.2f}",
        ]
        for query in ends(order)
    ]
    by_bytes = [
        [
            f"{low / 1e6:g} to {high / 1e6:g} MB" if high < 1e12 else f"over {low / 1e6:g} MB",
            *shares,
        ]
        for low, high in itertools.pairwise((0, 1e5, 1e6, 1e7, 1e12))
        if (
            shares := share(
                ratio,
                [
                    query
                    for query in ratio
                    if low <= timed[query]["zerohop"]["shuffle_bytes"] < high
                ],
            )
        )
    ]
    text = (
        f"{equal}. Geometric mean of the ratios of "
        f"{summary['queries']} queries: **{1 / summary['geometric_mean']:.3f}**; {summary['faster']} are faster, "
        f"{summary['faster_by_5_percent']} by more than 5 %, and {summary['slower_by_5_percent']} slower by more than 5 %. "
        "By how much a query shuffles:\n\n"
        + markdown(["shuffled", "queries", "geometric mean", "least", "largest"], by_bytes)
        + (
            "\n\nAll, the slowest first:\n\n"
            if len(body) == len(order)
            else "\n\nThe slowest ten and the fastest ten:\n\n"
        )
    )
    return text + markdown(["query", "zerohop", "sort", "times as fast"], body)


def ends(order, count=10):
    """The first and the last ones of many."""
    return order if len(order) <= 2 * count else order[:count] + order[-count:]


def gpu_tpcds(run, _):
    """What Zerohop is beside each contender, and single queries beside the best by files."""
    return "\n\n".join(
        gpu_partitions(run, partitions, about) for partitions, about in run["summary"].items()
    )


def gpu_partitions(run, partitions, about):
    best = about["best_by_files"]
    found = by_query(row for row in run["rows"] if str(row["partitions"]) == str(partitions))
    contenders = [
        [
            case,
            str(value["queries"]),
            f"{value['geometric_mean']:.2f}",
            f"{value['least']:.2f} ({value['least_query']})",
            ", ".join(value["below_0.9_beyond_spread"]) or "none",
        ]
        for case, value in about["times_as_fast"].items()
    ]
    timed = {
        query: cases
        for query, cases in found.items()
        if all("seconds" in cases.get(case, {}) for case in ("zerohop", best))
    }
    ratio = {
        query: cases[best]["seconds"] / cases["zerohop"]["seconds"]
        for query, cases in timed.items()
    }
    order = ends(sorted(ratio, key=ratio.get))
    body = [
        [
            query,
            seconds(timed[query]["zerohop"]),
            seconds(timed[query][best]),
            f"{ratio[query]:.2f}",
        ]
        for query in order
    ]
    heading = [
        "contender",
        "queries",
        "Zerohop times as fast, geometric mean",
        "least",
        "below 0.9 beyond their spread",
    ]
    return (
        f"{partitions} shuffle partitions; best by files: `{best}`.\n\n"
        + markdown(heading, contenders)
        + (
            "\n\nThe ten queries with the smallest ratios and the ten with the largest:\n\n"
            if len(ratio) > 20
            else "\n\n"
        )
        + markdown(["query", "zerohop", best, f"{best} / zerohop"], body)
    )


def gpu_tpcds_check(run, _):
    """Rows, plans and statistics beside those of others."""
    cases = {}
    for row in run["rows"]:
        cases.setdefault(row["case"], []).append(row)
    body = []
    for case, rows in sorted(cases.items(), key=lambda item: not item[0].startswith("zerohop")):
        beside = run["summary"].get(case)
        size = beside["data_size_ratio"] if beside else None
        body.append(
            [
                case,
                str(len(rows)),
                str(sum(row["equal"] is True for row in rows)),
                str(sum(row["equal"] is None for row in rows)),
                f"{sum(row.get('data_bytes', 0) for row in rows) / 1e9:.1f}",
                f"{sum(row.get('staged_bytes', 0) for row in rows) / 1e9:.1f}",
                f"{len(beside['plans_that_differ'])} of {beside['plans_compared']}"
                if beside
                else "",
                f"{size['median']:.3f} ({size['farthest']:.3f} in {size['farthest_query']})"
                if beside
                else "",
            ]
        )
    return markdown(
        [
            "contender",
            "queries run",
            "equal to the CPU's",
            "CPU not asked",
            "data size, GB",
            "staged, GB",
            "other plans than Zerohop's",
            "Zerohop's data size / its (farthest)",
        ],
        body,
    )


def tpch(run, _):
    """TPC-H's queries, whose summary rapids.sh made."""
    found = run["summary"]["queries"]
    cases = in_order(row["case"] for row in run["rows"])

    def seconds_of(cell):
        return f"{cell['seconds']:.2f} s ± {100 * cell['spread']:.0f} %" if cell else "-"

    def best_over_ours(cells):
        return (
            min(cell["seconds"] for case, cell in cells.items() if case != "zerohop")
            / cells["zerohop"]["seconds"]
        )

    body = [
        [query, *(seconds_of(cells.get(case)) for case in cases), f"{best_over_ours(cells):.2f}"]
        for query, cells in found.items()
        if len(cells) > 1
    ]
    faster = geometric_mean([best_over_ours(cells) for cells in found.values() if len(cells) > 1])
    body.append(["geometric mean", *[""] * len(cases), f"{faster:.2f}"])
    return markdown(["query", *cases, "best / zerohop"], body)


# Whose time a part of a task is; what is not here is an operator of RAPIDS'.
OF_SPARK = ("start and result", "scheduler", "garbage collection")
OF_SHUFFLE = (
    "wait for blocks",
    "shuffle write",
    "GpuColumnarExchange",
    "GpuCustomShuffleReader",
    "GpuShuffleCoalesce",
)


def operators(run, _):
    """Seconds of all tasks by what they were spent with, and whose that is."""
    cases = in_order(row["case"] for row in run["rows"])
    found = {}
    for row in run["rows"]:
        found.setdefault(row["part"], {})[row["case"]] = row["seconds"]
    first = found.pop("run")
    parts = sorted(found, key=lambda part: -max(found[part].values()))

    def line(name, whose, seconds):
        return [name, whose, *(f"{seconds.get(case, 0):,.0f}" for case in cases)]

    body = [line("tasks run", "", first)]
    body += [
        line(f"`{part}`" if part.startswith("Gpu") else part, whose(part), found[part])
        for part in parts
        if max(found[part].values()) >= 0.01 * max(first.values())
    ]
    for name in ("shuffle", "RAPIDS", "Spark"):
        parts_of = [part for part in parts if whose(part) == name]
        sums = {case: sum(found[part].get(case, 0) for part in parts_of) for case in cases}
        body.append(line(f"all of {name}", name, sums))
    return markdown(["part", "whose", *(f"{case}, s" for case in cases)], body)


def whose(part):
    if part in OF_SPARK:
        return "Spark"
    return "shuffle" if part in OF_SHUFFLE else "RAPIDS"
