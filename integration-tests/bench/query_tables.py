"""Tables of TPC-DS for docs/benchmarks.md, from the files that the benchmarks write."""


def table(heading, body):
    lines = ["| " + " | ".join(heading) + " |", "| " + " | ".join(["---"] + ["---:"] * (len(heading) - 1)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


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


def host(run, _):
    """Ratios of Zerohop's medians to sort shuffle's, the slowest first, and what they come to."""
    summary = run["summary"][0]
    equal = f"{summary['equal']} of {summary['asked']} queries return sort shuffle's rows"
    if summary["geometric_mean"] is None:
        return f"{equal}. Nothing was timed in this run."
    timed = {query: cases for query, cases in by_query(run["rows"]).items()
             if all("seconds" in cases.get(case, {}) for case in ("zerohop", "sort"))}
    ratio = {query: cases["zerohop"]["seconds"] / cases["sort"]["seconds"] for query, cases in timed.items()}
    order = sorted(ratio, key=ratio.get, reverse=True)
    ends = order if len(order) <= 20 else order[:10] + order[-10:]
    body = [[query, seconds(timed[query]["zerohop"]), seconds(timed[query]["sort"]), f"{ratio[query]:.2f}"] for query in ends]
    text = (f"{equal}. Geometric mean of the ratios of "
            f"{summary['queries']} queries: **{summary['geometric_mean']:.3f}**; {summary['faster']} are faster, "
            f"{summary['faster_by_5_percent']} by more than 5 %, and {summary['slower_by_5_percent']} slower by more than 5 %. "
            "The ten with the largest ratios and the ten with the smallest:\n\n")
    return text + table(["query", "zerohop", "sort", "zerohop / sort"], body)


def gpu(run, _):
    """Each query's times, and how many times as fast Zerohop is as the best by files."""
    parts = []
    for partitions, about in run["summary"].items():
        best = about["best_by_files"]
        rows = [row for row in run["rows"] if str(row["partitions"]) == str(partitions)]
        cases = ["zerohop"] + sorted({row["case"] for row in rows} - {"zerohop"})
        body = []
        for query, found in by_query(rows).items():
            ours, theirs = (found.get(case, {}).get("seconds") for case in ("zerohop", best))
            if ours and theirs:
                body.append([query, *(seconds(found.get(case)) for case in cases), f"{theirs / ours:.2f}"])
        mean = about["times_as_fast"][best]["geometric_mean"]
        body.append(["**geometric mean**", *[""] * len(cases), f"**{mean:.2f}**"])
        parts.append(f"{partitions} shuffle partitions:\n\n" + table(["query", *cases, f"{best} / zerohop"], body))
    return "\n\n".join(parts)


def gpu_check(run, _):
    """Rows, plans and statistics beside those of others."""
    cases = {}
    for row in run["rows"]:
        cases.setdefault(row["case"], []).append(row)
    body = []
    for case, rows in sorted(cases.items(), key=lambda item: not item[0].startswith("zerohop")):
        beside = run["summary"].get(case)
        size = beside["data_size_ratio"] if beside else None
        body.append([
            case, str(len(rows)), str(sum(row["equal"] is True for row in rows)), str(sum(row["equal"] is None for row in rows)),
            f"{sum(row.get('data_bytes', 0) for row in rows) / 1e9:.1f}", f"{sum(row.get('staged_bytes', 0) for row in rows) / 1e9:.1f}",
            f"{len(beside['plans_that_differ'])} of {beside['plans_compared']}" if beside else "",
            f"{size['median']:.3f} ({size['farthest']:.3f} in {size['farthest_query']})" if beside else ""])
    return table(["contender", "queries run", "equal to the CPU's", "CPU not asked", "data size, GB", "staged, GB",
                  "other plans than Zerohop's", "Zerohop's data size / its (farthest)"], body)
