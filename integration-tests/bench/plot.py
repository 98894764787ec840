#!/usr/bin/env python3
"""Draws docs/measurements/*.json: one SVG per benchmark and the tables of docs/benchmarks.md.

Every number in the page comes from the files, ratios included. Needs nothing but Python 3.8.
Usage: plot.py [FOLDER_OF_JSON [PAGE]]
"""

import itertools
import json
import math
import sys
from pathlib import Path
from statistics import median, quantiles

import query_tables

COLOURS = {
    "zerohop": "#1b7f5c",
    "sort": "#8a8f98",
    "sort_uncompressed": "#c9ccd1",
    "zerohop, 8 SMs": "#7fbfa6",
    "zerohop, 24 SMs": "#1b7f5c",
    "zerohop, all SMs": "#0c4a35",
    "memcpy_batch": "#8a8f98",
    "memcpy_loop": "#c9ccd1",
    "16 KiB": "#1b7f5c",
    "4 KiB": "#7fbfa6",
    "zerohop, one block": "#0c4a35",
    "zerohop, 256 KiB": "#1b7f5c",
    "zerohop, 16 KiB": "#7fbfa6",
    "nccl": "#8a8f98",
    "multithreaded": "#c9ccd1",
    "ucx": "#4a6fa5",
}
YARDSTICKS = ("sort", "sort_uncompressed")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 360, 70, 20, 50, 60


def spread(values):
    """The interquartile range relative to the median; 0 where there are fewer than 2 values."""
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / median(values)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def timed(rows, **wanted):
    """Rows that were timed (iteration 0 only warms up) and have these fields."""
    return [
        row
        for row in rows
        if row.get("iteration", 0) > 0 and all(row.get(k) == v for k, v in wanted.items())
    ]


def in_order(values):
    return list(dict.fromkeys(values))


def medians(rows, key, field):
    """{key value: {case: (median, spread)}} in the order of the rows."""
    found = {}
    for value in in_order(row[key] for row in timed(rows)):
        found[value] = {}
        for case in in_order(row["case"] for row in rows):
            sample = [row[field] for row in timed(rows, case=case, **{key: value})]
            if sample:
                found[value][case] = (median(sample), spread(sample))
    return found


def best_yardstick(by_case):
    """The faster of the yardsticks that were measured."""
    return min((by_case[case] for case in YARDSTICKS if case in by_case), default=None)


def ratio(by_case):
    """Zerohop's median over the better yardstick's, or None where either is missing."""
    yardstick = best_yardstick(by_case)
    if yardstick is None or "zerohop" not in by_case or yardstick[0] == 0:
        return None
    return by_case["zerohop"][0] / yardstick[0]


def text(x, y, content, anchor="middle", size=12, weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{content}</text>'
    )


def legend(cases):
    parts = []
    for i, case in enumerate(cases):
        x = LEFT + i * 170
        parts.append(f'<rect x="{x}" y="26" width="12" height="12" fill="{COLOURS[case]}"/>')
        parts.append(text(x + 18, 36, case, "start"))
    return parts


def svg(parts, title):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" role="img" aria-label="{title}">'
    )
    back = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    return "\n".join([head, back, text(LEFT, 18, title, "start", 14, "bold"), *parts, "</svg>\n"])


def axis(ticks, place, label):
    parts = []
    for tick in ticks:
        y = place(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e6e9"/>')
        parts.append(text(LEFT - 6, y + 4, f"{tick:g} {label}", "end", 11))
    return parts


def nice_step(top):
    raw = top / 5
    power = 10 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw)


def bars(found, cases, title, label):
    """Grouped bars with the spread as whiskers."""
    top = max(value * (1 + s) for by_case in found.values() for value, s in by_case.values())
    step = nice_step(top)
    ceiling = math.ceil(top / step) * step
    plot = HEIGHT - TOP - BOTTOM

    def place(value):
        return TOP + plot * (1 - value / ceiling)

    parts = axis([i * step for i in range(round(ceiling / step) + 1)], place, label)
    slot = (WIDTH - LEFT - RIGHT) / len(found)
    width = slot * 0.8 / len(cases)
    for i, (key, by_case) in enumerate(found.items()):
        x = LEFT + i * slot + slot * 0.1
        for j, case in enumerate(cases):
            if case not in by_case:
                continue
            value, s = by_case[case]
            bar = x + j * width
            parts.append(
                f'<rect x="{bar:.1f}" y="{place(value):.1f}" width="{width - 1:.1f}" '
                f'height="{TOP + plot - place(value):.1f}" fill="{COLOURS[case]}"/>'
            )
            low, high = place(value * (1 - s / 2)), place(value * (1 + s / 2))
            parts.append(
                f'<path d="M{bar + width / 2:.1f} {low:.1f}V{high:.1f}" stroke="#222"/>'
            )
        parts.append(text(x + slot * 0.4, HEIGHT - BOTTOM + 16, str(key).replace("_", " "), size=10))
    return svg(parts + legend(cases), title)


def lines(found, cases, title, label, x_label):
    """Lines over logarithmic axes."""
    values = [value for by_case in found.values() for value, _ in by_case.values()]
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    keys = sorted(found)
    plot = HEIGHT - TOP - BOTTOM
    reach = math.log10(keys[-1] / keys[0]) or 1

    def place(value):
        return TOP + plot * (1 - (math.log10(value) - low) / (high - low))

    def across(key):
        return LEFT + 30 + (WIDTH - LEFT - RIGHT - 60) * math.log10(key / keys[0]) / reach

    ticks = [m * 10.0**e for e in range(low, high) for m in (1, 2, 5)] + [10.0**high]
    parts = axis(ticks, place, label)
    for case in cases:
        points = [(across(k), place(found[k][case][0])) for k in keys if case in found[k]]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[case]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[case]}"/>' for x, y in points]
    parts += [text(across(key), HEIGHT - BOTTOM + 18, f"{key:,}") for key in keys]
    parts.append(text(WIDTH / 2, HEIGHT - 12, x_label))
    return svg(parts + legend(cases), title)


def markdown(heading, body):
    rule = ["---"] + ["---:"] * (len(heading) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [heading, rule, *body])


def cell(by_case, case):
    if case not in by_case:
        return "-"
    value, s = by_case[case]
    return f"{value:.2f} ± {100 * s / 2:.0f} %"


def shown(value):
    return "-" if value is None else f"{value:.2f}"


def provenance(run):
    host = run["host"]
    setting = ", ".join(
        f"{key} {value}" for key, value in run["setting"].items() if key != "conf"
    )
    conf = run["setting"].get("conf") or {}
    extra = "".join(f", {key}={value}" for key, value in conf.items())
    commit, _, dirty = run["commit"].partition("-")
    changed = " with changes" if dirty else ""
    return (
        f"{host['cpu']}, {host['cpu_cores']} cores, {host['memory_bytes'] / 1e9:.0f} GB, "
        f"Java {host['java']}; {setting}{extra}; commit {commit[:12]}{changed}, {run['date']}."
    )


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
            [query, *(cell(by_case, case) for case in cases), shown(ratio(by_case)),
             shown(ratio(stages[query]))]
        )
    both = [[r for r in map(ratio, found.values()) if r] for found in (seconds, stages)]
    if all(both):
        means = [f"**{geometric_mean(ratios):.2f}**" for ratios in both]
        body.append(["**geometric mean**", *([""] * len(cases)), *means])
    heading = ["query", *(f"{case}, s" for case in cases), "ratio", "ratio of shuffle stages"]
    return markdown(heading, body) + memory_table(rows, cases)


UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def host_memory(run, folder):
    """A pool that is smaller than the shuffles: what the executors hold is bounded by it."""
    size = run["setting"]["conf"]["spark.zerohop.pool.size"]
    pools = int(size[:-1]) * UNITS[size[-1]] * run["setting"]["executors"]
    staged = {row["query"]: row["staged_bytes"] for row in run["rows"] if "staged_bytes" in row}
    body = [
        [row["query"], f"{pools / 1e6:.0f}", f"{row['pss_shared_peak_bytes'] / 1e6:.0f}",
         f"{row['pss_shared_peak_bytes'] / pools:.3f}", f"{staged[row['query']] / 1e6:.0f}"]
        for row in run["rows"] if "pss_peak_bytes" in row
    ]
    heading = ["query", "pools, MB", "peak of shared PSS, MB", "ratio", "staged from files, MB"]
    return markdown(heading, body)


def host_fifth(run, folder):
    """Pools far smaller than the shuffles, beside sort shuffle."""
    rows = [row for row in run["rows"] if row.get("iteration", 0) > 0]
    seconds = medians(run["rows"], "query", "seconds")
    body = []
    for query, by_case in seconds.items():
        ours = [row for row in rows if row["query"] == query and row["case"] == "zerohop"]
        moved = {path: median(row[f"{path}_bytes"] for row in ours) for path in ("local", "peer", "staged")}
        body.append([query, *(cell(by_case, case) for case in ("sort", "zerohop")), shown(ratio(by_case)),
                     f"{sum(moved.values()) / 1e6:.0f}", f"{moved['staged'] / 1e6:.0f}"])
    heading = ["query", "sort, s", "zerohop, s", "ratio", "read, MB", "of it staged, MB"]
    return markdown(heading, body)


def nodes(run, folder):
    """Whole jobs between two nodes, beside sort shuffle over the same link."""
    cases = in_order(row["case"] for row in run["rows"])
    seconds = medians(run["rows"], "query", "seconds")
    stages = medians(run["rows"], "query", "stage_ms")
    body = []
    for query, by_case in seconds.items():
        between = median(row["ucx_bytes"] for row in timed(run["rows"], query=query, case="zerohop"))
        body.append([query, *(cell(by_case, case) for case in cases), shown(ratio(by_case)),
                     shown(ratio(stages[query])), f"{between / 1e6:.0f}"])
    means = [f"**{geometric_mean([ratio(by_case) for by_case in found.values()]):.2f}**"
             for found in (seconds, stages)]
    body.append(["**geometric mean**", *([""] * len(cases)), *means, ""])
    heading = ["query", *(f"{case}, s" for case in cases), "ratio", "ratio of shuffle stages",
               "by UCX, MB"]
    idle = [row for row in run["rows"] if "idle_seconds" in row]
    most = max(row["share_of_core"] for row in idle)
    seconds_idle = median(row["idle_seconds"] for row in idle)
    return markdown(heading, body) + (
        f"\n\nWhile executors idled for {seconds_idle:.0f} s behind it, a thread of UCX took "
        f"{100 * most:.2f} % of a core, counted in hundredths of a second.")


def spill(run, folder):
    """Map outputs from memory to files, beside plain writes; ratios of each round, then their median."""
    shape = ("output_bytes", "block_bytes", "batches")
    body = []
    for wanted in in_order(tuple(row[key] for key in shape) for row in run["rows"]):
        rows = timed(run["rows"], **dict(zip(shape, wanted)))
        ours, plain = ({row["iteration"]: row for row in rows if row["case"] == case}
                       for case in ("zerohop", "plain_write"))
        ratios, cpu_ratios = ([plain[i][field] / ours[i][field] for i in ours] for field in ("seconds", "cpu_seconds"))
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        rates = (median(row["gbps"] for row in case.values()) for case in (ours, plain))
        body.append([f"{wanted[0] >> 20}", f"{wanted[1] >> 10}", f"{wanted[2]}", *(f"{rate:.2f}" for rate in rates),
                     f"{median(ratios):.2f} ({low:.2f} to {high:.2f})", f"{median(cpu_ratios):.2f}"])
    heading = ["map output, MiB", "block in a batch, KiB", "batches", "zerohop, GB/s", "plain write, GB/s",
               "ratio (middle half)", "ratio of processor time"]
    return markdown(heading, body)


def gpu_memory(run, folder):
    """Exchanges with more and with less room in GPU memory."""
    rows = [row for row in run["rows"] if row["iteration"] > 0]
    cases = in_order(row["case"] for row in rows)
    of = {case: [row for row in rows if row["case"] == case] for case in cases}
    stages = {case: median(row["exchange_ms"] for row in of[case]) for case in cases}
    files = min(stages[case] for case in ("multithreaded", "sort"))
    body = []
    for case in cases:
        peak = max(row["pool_device_peak_bytes"] for row in of[case])
        overflow, moved = (median(row[f"{what}_bytes"] for row in of[case]) for what in ("overflow", "spill_host"))
        body.append([case, exchange_cell(of[case]), *(f"{value / 1e9:.2f}" for value in (peak, overflow, moved)),
                     f"{files / stages[case]:.1f}"])
    heading = ["case", "write + read, whole", "peak on the GPU, GB", "written to host memory, GB",
               "moved there later, GB", "files / this"]
    return markdown(heading, body)


def host_link(run, folder):
    body = [
        [row["case"].replace("_", " "), f"{row['block_bytes'] >> 10:,}" if row["sms"] else "one block",
         str(row["sms"] or "-"), f"{row['gbps']:.1f}", f"{row['gbps_least']:.1f} to {row['gbps_most']:.1f}",
         f"{row['share_of_peak']:.3f}"]
        for row in run["rows"] if "gbps" in row
    ]
    pin = next(row for row in run["rows"] if row["case"] == "pin")
    return (f"Pinning a segment of {pin['bytes'] >> 20} MiB takes {pin['ms']:.1f} ms.\n\n"
            + markdown(["case", "blocks, KiB", "SMs", "GB/s", "spread", "share of the engine's"], body))


def growth(run, folder):
    rows = run["rows"]
    cases = in_order(row["case"] for row in rows)
    seconds = medians(rows, "tasks", "seconds")
    (folder / "growth.svg").write_text(
        lines(seconds, cases, "The same bytes in ever more blocks (median)", "s",
              "map tasks = partitions; blocks are its square")
    )
    body = [
        [f"{tasks:,} x {tasks:,}", f"{tasks * tasks:,}",
         *(cell(by_case, case) for case in cases), shown(ratio(by_case))]
        for tasks, by_case in seconds.items()
    ]
    return markdown(["map tasks x partitions", "blocks", *(f"{c}, s" for c in cases), "ratio"], body)


def rounds_of(run):
    """The timed rows of each case."""
    about = ("case", "query", "million_rows", "maps", "partitions", "pool", "executors")
    rows = [row for row in run["rows"] if row.get("iteration", 0) > 0]
    return itertools.groupby(sorted(rows, key=lambda row: str([row.get(k) for k in about])),
                             key=lambda row: str([row.get(k) for k in about]))


def gpu_provenance(run):
    host = run["host"]
    commit, _, dirty = run["commit"].partition("-")
    changed = " with changes" if dirty else ""
    found = sorted({row["runs"] for row in run["rows"] if "runs" in row} or {len(list(group)) for _, group in rounds_of(run)}) or [5]
    rounds = "median of " + (f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}")
    if "runs_of_a_query" in run.get("setting", {}):
        rounds = f"up to {run['setting']['runs_of_a_query']} runs of a query"
    link = f", {host['link']}" if "link" in host else ""
    return (
        f"{host['gpus']} x {host['gpu']}{link}, driver {host['driver']}; {rounds}; "
        f"commit {commit[:12]}{changed}, {run['date']}."
    )


def gbps(row):
    """The median and the whole spread relative to it, as the plots take them."""
    return row["gbps"], (row["gbps_most"] - row["gbps_least"]) / row["gbps"]


def by(rows, key, name):
    """{key value: {name of the row: (gbps, spread)}}."""
    found = {}
    for row in rows:
        found.setdefault(row[key], {})[name(row)] = gbps(row)
    return found


def sms_name(row):
    return f"zerohop, {row['sms']} SMs" if row["sms"] < 100 else "zerohop, all SMs"


def gather(run, folder):
    rows = run["rows"]
    peak = next(row["gbps"] for row in rows if row["case"] == "copy_engine_peak")
    even = [row for row in rows if row["case"] == "zerohop" and row["sms"] != 16]
    others = [row for row in rows if row["case"] in ("memcpy_loop", "memcpy_batch")]
    found = by(even, "block_bytes", sms_name)
    for size, cells in by(others, "block_bytes", lambda row: row["case"]).items():
        found.setdefault(size, {}).update(cells)
    cases = ["zerohop, 8 SMs", "zerohop, 24 SMs", "zerohop, all SMs", "memcpy_batch", "memcpy_loop"]
    (folder / "gather.svg").write_text(
        lines(found, cases, "One GPU gathers from another (median)", "GB/s", "bytes of a block")
    )
    curve = by(
        [row for row in rows if row["case"] == "zerohop_by_sms"],
        "sms",
        lambda row: f"{row['block_bytes'] >> 10} KiB",
    )
    (folder / "gather_sms.svg").write_text(
        lines(curve, ["16 KiB", "4 KiB"], "The same over the number of SMs", "GB/s", "SMs")
    )

    def share(cells, case):
        return f"{cells[case][0]:.0f} ({cells[case][0] / peak:.3f})" if case in cells else "-"

    body = [[f"{size:,}", *(share(found[size], case) for case in cases)] for size in sorted(found)]
    zipf = [row for row in rows if "zipf" in row["case"] and "gbps" in row]
    zipf_body = [
        [f"{row['blocks']:,} of 1 to {row['block_bytes']:,} bytes", sms_name(row),
         f"{row['gbps']:.0f}", f"{row['gbps'] / peak:.3f}", f"{row['gbps_submitted'] / peak:.3f}"]
        for row in zipf
    ]
    submit = [
        [row["case"].removesuffix("_submit"), f"{row['block_bytes']:,}", f"{row['blocks']:,}",
         f"{row['us']:.0f}", f"{row['us_per_block']:.3f}"]
        for row in rows if row["case"].endswith("_submit") and "by_sms" not in row["case"]
    ]
    return "\n\n".join([
        f"GB/s, and the share of the copy engine's peak on one block of 2 GiB, {peak:.0f} GB/s:",
        markdown(["bytes of a block", *cases], body),
        "![over SMs](measurements/gather_sms.svg)",
        "Sizes by Zipf's law at odd places; the last column counts the host's work as well:",
        markdown(["blocks", "", "GB/s", "share", "with submitting"], zipf_body),
        "What the host pays to submit a window:",
        markdown(["case", "bytes of a block", "blocks", "us", "us a block"], submit),
    ])


def alltoall(run, folder):
    rows = run["rows"]

    def name(row):
        if row["case"] == "nccl":
            return "nccl"
        whole = row["block_bytes"] == row["bytes_per_rank"] // row["gpus"]
        return "zerohop, one block" if whole else f"zerohop, {row['block_bytes'] >> 10} KiB"

    cases = ["zerohop, one block", "zerohop, 256 KiB", "zerohop, 16 KiB", "nccl"]
    main_rows = [row for row in rows if row.get("sms", 24) == 24]
    body = []
    for gpus in in_order(row["gpus"] for row in rows):
        found = by([row for row in main_rows if row["gpus"] == gpus], "bytes_per_rank", name)
        for size in sorted(found):
            cells = found[size]
            ratios = [
                f"{cells[case][0] / cells['nccl'][0]:.2f}" if case in cells else "-"
                for case in cases[:3]
            ] if "nccl" in cells else ["-"] * 3
            body.append([f"{gpus}", f"{size >> 20:,} MiB",
                         *(f"{cells[c][0]:.0f}" if c in cells else "-" for c in cases), *ratios])
    gigabyte = by([row for row in main_rows if row["bytes_per_rank"] == 1 << 30], "gpus", name)
    (folder / "alltoall.svg").write_text(
        bars(gigabyte, cases, "All to all, 1 GiB a rank, over the number of GPUs", "GB/s")
    )
    curve = [row for row in rows if row["case"] == "zerohop" and row["block_bytes"] == 256 << 10
             and row["bytes_per_rank"] == 1 << 30]
    sms = sorted({row["sms"] for row in curve})
    counts = in_order(row["gpus"] for row in curve)
    sms_body = [
        [f"{gpus} GPUs", *(next((f"{row['gbps']:.0f}" for row in curve
                                 if row["gpus"] == gpus and row["sms"] == n), "-") for n in sms)]
        for gpus in counts
    ]
    heading = ["GPUs", "a rank", *(f"{c}, GB/s" for c in cases), *(f"{c} / nccl" for c in cases[:3])]
    return "\n\n".join([
        "Bytes that each GPU gets from others, over the time of the slowest; 24 SMs:",
        markdown(heading, body),
        "1 GiB a rank in blocks of 256 KiB, GB/s over the number of SMs:",
        markdown(["", *map(str, sms)], sms_body),
    ])


def signal(run, folder):
    body = [
        [row["case"].replace("_", " "), f"{row['round_trip_us']:.2f}",
         f"{row['round_trip_us_least']:.2f} to {row['round_trip_us_most']:.2f}"]
        for row in run["rows"]
    ]
    return markdown(["round trip between two GPUs", "us", "spread"], body)


def exchanges(run, folder):
    """Stages that write and read a shuffle of RAPIDS, beside the best that goes by files and UCX."""
    rows = [row for row in run["rows"] if row["iteration"] > 0]
    cases = in_order(row["case"] for row in rows)

    def key_of(row):
        gpus = row.get("executors", run["host"]["gpus"])
        shape = f"{row['partitions']:,}"
        if "maps" in row:
            shape = f"{row['maps']:,} x {shape}" + ("" if row["coalescing"] else ", all")
        return row["query"], row["million_rows"], shape, gpus, row["pool"]

    def times_faster(found, others, field):
        others = [median(row[field] for row in found[case]) for case in others if found.get(case)]
        mine = found.get("zerohop")
        return f"{min(others) / median(row[field] for row in mine):.1f}" if others and mine else "-"

    yardsticks = {"files": ["multithreaded", "sort"], "ucx": ["ucx"]}
    yardsticks = {name: who for name, who in yardsticks.items() if set(who) & set(cases)}
    body = []
    for key in in_order(map(key_of, rows)):
        found = {case: [r for r in rows if key_of(r) == key and r["case"] == case] for case in cases}
        line = [key[0], f"{key[1]} M", key[2], str(key[3]), key[4]]
        line += [exchange_cell(found[case]) if found[case] else "-" for case in cases]
        for others in yardsticks.values():
            line += [times_faster(found, others, field) for field in ("exchange_ms", "seconds")]
        body.append(line)
    ratios = [f"{what} / {name}" for name in yardsticks for what in ("stages", "whole")]
    return markdown(["query", "rows", "partitions", "GPUs", "pool", *cases, *ratios], body)


def tax(run, folder):
    """What an exchange costs, and what its tasks spend their time with."""
    body = []
    for line in sorted(run["summary"], key=lambda each: (each["maps"], each["partitions"], each["case"] != "zerohop")):
        spent = line["task_ms"]

        def ms(*names):
            return sum(spent.get(name, 0) for name in names)

        read, wait = ms("RAPIDS shuffle shuffle read time"), ms("fetch wait")
        parts = [ms("RAPIDS shuffle partition time"), ms("shuffle write"), wait, read - wait, ms("aggregation time")]
        body.append([f"{line['maps']} x {line['partitions']:,}", line["case"], *(f"{line[name]:.3f} s" for name in ("seconds", "unmoved_seconds", "tax_seconds")),
                     *(f"{part:,.0f}" for part in parts), f"{ms('run') - sum(parts):,.0f}", f"{ms('task') - ms('run'):,.0f}"])
    return markdown(["shape", "shuffle", "whole", "unmoved", "exchange", "partition, split", "pack, publish", "plan, look-up, wait",
                     "gather, assemble", "RAPIDS' aggregation", "rest of the tasks", "Spark"], body)


def exchange_cell(rows):
    write, read, whole = (median(row[field] for row in rows) for field in ("write_ms", "read_ms", "seconds"))
    return f"{write:.0f} + {read:.0f} ± {50 * spread([r['exchange_ms'] for r in rows]):.0f} %, {whole:.2f} s"


def queries(run, folder):
    """TPC-H's queries, whose summary rapids.sh made."""
    found = run["summary"]["queries"]
    cases = in_order(row["case"] for row in run["rows"])

    def seconds_of(cell):
        return f"{cell['seconds']:.2f} s ± {100 * cell['spread']:.0f} %" if cell else "-"

    def best_over_ours(cells):
        return min(cell["seconds"] for case, cell in cells.items() if case != "zerohop") / cells["zerohop"]["seconds"]

    body = [[query, *(seconds_of(cells.get(case)) for case in cases), f"{best_over_ours(cells):.2f}"]
            for query, cells in found.items()]
    faster = geometric_mean([best_over_ours(cells) for cells in found.values()])
    body.append(["geometric mean", *[""] * len(cases), f"{faster:.2f}"])
    return markdown(["query", *cases, "best / zerohop"], body)


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
    for bench, draw in (
        ("host_job", host_job), ("host_memory", host_memory), ("host_fifth", host_fifth), ("nodes", nodes),
        ("growth", growth),
        ("spill", spill),
        ("gather", gather), ("alltoall", alltoall), ("signal", signal),
        ("gpu_exchange", exchanges), ("gpu_exchange_one", exchanges), ("gpu_exchange_scale", exchanges),
        ("gpu_blocks", exchanges), ("gpu_blocks_one", exchanges), ("gpu_tax", tax),
        ("host_tpcds", query_tables.host), ("gpu_tpcds", query_tables.gpu),
        ("gpu_tpcds_partitions", query_tables.gpu), ("gpu_tpcds_check", query_tables.gpu_check),
        ("gpu_tpch", queries), ("gpu_memory", gpu_memory), ("host_link", host_link),
    ):
        source = folder / f"{bench}.json"
        if not source.exists():
            continue
        run = json.loads(source.read_text())
        table = draw(run, folder)
        plot = f"![{bench}](measurements/{bench}.svg)\n\n" if (folder / f"{bench}.svg").exists() else ""
        origin = gpu_provenance(run) if "gpu" in run["host"] else provenance(run)
        content = f"{plot}{table}\n\n{origin}"
        page = replace_section(page, bench, content)
        print(f"drew {bench} from {source}")
    page_file.write_text(page)


if __name__ == "__main__":
    main()
