"""Exchanges that were timed."""

import collections
import json
import os
import pathlib
import statistics
import sys

from charts import bars
from measurement import measurement
from measurements import write
from samples import spread


def timed(file):
    """All rows, and those that were timed by what was asked and whom. Stops at differing results."""
    rows = [json.loads(line) for line in open(file)]
    groups = collections.defaultdict(list)
    results = collections.defaultdict(set)
    for row in rows:
        key = (
            row["query"],
            row["million_rows"],
            row["maps"],
            row["partitions"],
            row["coalescing"],
            row["executors"],
        )
        results[key].add(row.pop("result"))
        if row["iteration"] > 0:
            groups[key + (row["pool"], row["case"])].append(row)
    for key, different in results.items():
        if len(different) > 1:
            sys.exit(f"{key}: the shuffles gave different results: {different}")
    return rows, groups


def middle(group, field):
    return statistics.median(row[field] for row in group)


def bench(file):
    rows, groups = timed(file)
    for key, group in sorted(groups.items()):
        least, most = (f(row["exchange_ms"] for row in group) for f in (min, max))
        query, millions, maps, partitions, coalescing, executors, pool, case = key
        print(
            f"{query:<12} {millions:>3} M rows {maps:>4} x {partitions:<5} {'coalesced' if coalescing else 'all      '} {executors} executors {pool} {case:<14}",
            "write %5.0f read %5.0f exchange %5.0f (%.0f to %.0f) ms, whole %.3f s"
            % (
                middle(group, "write_ms"),
                middle(group, "read_ms"),
                middle(group, "exchange_ms"),
                least,
                most,
                middle(group, "seconds"),
            ),
        )
    return rows


class Blocks:
    """What exchanges of many small blocks cost, beside files and beside RAPIDS' own split."""

    def __init__(self, groups):
        self.groups = groups

    def median(self, case, query, maps, partitions, field="seconds"):
        found = [
            group
            for key, group in self.groups.items()
            if (key[0], key[2], key[3], key[-1]) == (query, maps, partitions, case)
        ]
        return middle(found[0], field) if found else None

    def files(self, query, maps, partitions):
        """The best of those that go by files."""
        cases = {key[-1] for key in self.groups}
        found = [
            self.median(case, query, maps, partitions)
            for case in cases
            if not case.startswith(("ucx", "zerohop"))
        ]
        return min((seconds for seconds in found if seconds), default=None)

    def ratio(self, one, other):
        return round(one / other, 3) if one and other else None

    def ran(self, query, maps, partitions):
        """Whether ours was asked; what the other has to say may be missing."""
        return self.median("zerohop", query, maps, partitions) is not None

    def goals(self):
        """The aims for the shapes that were run."""
        return [
            goal
            for (query, maps, partitions), about in self.aims()
            if self.ran(query, maps, partitions)
            for goal in about
        ]

    def aims(self):
        ours, packed = "zerohop", "zerohop+packed"
        for query, least in (("repartition", 2.0), ("group_by", 2.0), ("join", 2.5)):
            yield (query, 200, 2000), [
                {
                    "goal": f"{query}, 200 map tasks x 2,000 partitions, times as fast as the best by files",
                    "at_least": least,
                    "value": self.ratio(
                        self.files(query, 200, 2000), self.median(ours, query, 200, 2000)
                    ),
                }
            ]
            yield (query, 200, 64), [
                {
                    "goal": f"{query}, write stage of 200 x 2,000 over that of 200 x 64",
                    "at_most": 1.5,
                    "value": self.ratio(
                        self.median(ours, query, 200, 2000, "write_ms"),
                        self.median(ours, query, 200, 64, "write_ms"),
                    ),
                }
            ]
            yield (query, 64, 64), [
                {
                    "goal": f"{query}, 64 x 64, {what} over that with RAPIDS' own split",
                    "at_most": most,
                    "value": self.ratio(
                        self.median(ours, query, 64, 64, field),
                        self.median(packed, query, 64, 64, field),
                    ),
                }
                for what, field, most in (
                    ("write stage", "write_ms", 0.8),
                    ("both stages", "exchange_ms", 1.0),
                )
            ]
            yield (query, 1000, 5000), [
                {
                    "goal": f"{query}, 1,000 x 5,000, times as fast as the best by files",
                    "at_least": 1.0,
                    "value": self.ratio(
                        self.files(query, 1000, 5000), self.median(ours, query, 1000, 5000)
                    ),
                }
            ]
        for maps, partitions, least in ((64, 64, 2.5), (200, 2000, 4.0)):
            yield ("repartition", maps, partitions), [
                {
                    "goal": f"repartition, {maps} x {partitions:,}, times as fast as RAPIDS' UCX mode",
                    "at_least": least,
                    "value": self.ratio(
                        self.median("ucx", "repartition", maps, partitions),
                        self.median(ours, "repartition", maps, partitions),
                    ),
                }
            ]


def blocks(out, commit_file, file):
    rows = bench(file)
    value = measurement("gpu_blocks", commit_file, rows)
    value["goals"] = Blocks(timed(file)[1]).goals()
    for goal in value["goals"]:
        print(goal)
    write(out, value)


def form(out, commit_file, *pairs):
    """What a later Spark at its defaults, and a range partitioning, cost beside hash partitions.

    Pairs are SPARK=FILE, of the earlier Spark first, and several of each.
    """
    groups = collections.defaultdict(list)
    for pair in pairs:
        spark, file = pair.split("=", 1)
        for found in timed(file)[1].values():
            first = found[0]
            groups[
                first["query"], first["maps"], first["partitions"], spark, first["case"]
            ] += found
    rows = []
    for (query, maps, partitions, spark, case), group in sorted(groups.items()):
        seconds = [row["seconds"] for row in group]
        rows.append(
            {"case": case, "spark": spark, "query": query, "maps": maps, "partitions": partitions}
            | {"runs": len(group), "seconds": round(statistics.median(seconds), 3)}
            | {"least_seconds": round(min(seconds), 3), "most_seconds": round(max(seconds), 3)}
            | {field: middle(group, field) for field in ("write_ms", "read_ms", "exchange_ms")}
            | {
                field: sum(row[field] for row in group)
                for field in ("staged_bytes", "failed_tasks")
            }
        )
    value = measurement("gpu_form", commit_file, rows)
    value["setting"] = {"million_rows": next(iter(groups.values()))[0]["million_rows"]}
    value["goals"] = form_goals(rows, [pair.split("=", 1)[0] for pair in pairs])
    for row in rows:
        print(row)
    for goal in value["goals"]:
        print(goal)
    write(out, value)


def form_goals(rows, releases):
    """Of whole queries, and of the stages alone: Spark's own sample of a range is no exchange."""
    before, after = releases[0], releases[-1]
    known = {
        (row["query"], row["maps"], row["partitions"], row["spark"]): row
        for row in rows
        if row["case"] == "zerohop"
    }
    shapes = sorted({key[1:3] for key in known})
    goals = []
    for maps, partitions in shapes:
        pairs = [
            (f"{after} at its defaults over {before}, {query}", (query, after), (query, before))
            for query in ("repartition", "group_by", "join", "text")
        ]
        pairs.append((f"{before}, range over hash", ("range", before), ("repartition", before)))
        for name, (query, spark), (other, other_spark) in pairs:
            over = known.get((query, maps, partitions, spark))
            under = known.get((other, maps, partitions, other_spark))
            for what, field in (("whole", "seconds"), ("stages", "exchange_ms")):
                goals.append(
                    {
                        "goal": f"{name}, {maps} x {partitions:,}, {what}",
                        "at_most": 1.1,
                        "value": over and under and round(over[field] / under[field], 3),
                    }
                )
    return goals


def network(case):
    """What of a contender's name says how executors are joined."""
    names = {
        "crypto": "encrypted",
        "link": "between namespaces",
        "isolated": "each executor sees one GPU",
        "nopeers": "one node without peer access",
    }
    said = [
        names.get(part) or f"{part[4:]} Gb/s"
        for part in case.split("+")
        if part in names or part.startswith("link")
    ]
    return "".join(", " + each for each in said)


def between(out, commit_file, *files):
    """Executors as if on nodes of their own: ours beside the best that goes by files."""
    rows, ratios = [], {}
    for file in files:
        some, groups = timed(file)
        rows += some
        asked = collections.defaultdict(dict)
        for key, group in groups.items():
            asked[key[0], key[2], key[3], network(key[-1])][key[-1]] = middle(group, "seconds")
        for shape, seconds in asked.items():
            ours = [value for case, value in seconds.items() if case.startswith("zerohop")]
            others = [value for case, value in seconds.items() if not case.startswith("zerohop")]
            if ours and others:
                ratios[shape] = min(others) / min(ours)
    value = measurement("gpu_between", commit_file, rows)
    value["goals"] = [
        {
            "goal": f"{query}, {maps} x {partitions:,}{name}, times as fast as the best by files",
            "at_least": 1.0,
            "value": round(ratio, 3),
        }
        for (query, maps, partitions, name), ratio in ratios.items()
    ]
    for name, least in (network("+"), 1.3), (network("+nopeers"), 1.5):
        some = [ratio for (*_, of), ratio in ratios.items() if of == name]
        if some:
            value["goals"].append(
                {
                    "goal": f"geometric mean{name or ' on a plain network'}",
                    "at_least": least,
                    "value": round(statistics.geometric_mean(some), 3),
                }
            )
    for goal in value["goals"]:
        print(goal)
    write(out, value)


def tax(out, commit_file, file):
    """What an exchange itself costs: a query with one beside the same without."""
    rows = [json.loads(line) for line in open(file)]
    groups = collections.defaultdict(list)
    results = {row.pop("result") for row in rows}
    if len(results) > 1:
        sys.exit(f"queries gave different results: {results}")
    for row in rows:
        if row["iteration"] > 0:
            groups[row["case"], row["maps"], row["partitions"], row["query"]].append(row)
    value = measurement("gpu_tax", commit_file, rows)
    value["summary"] = []
    for case, maps, partitions, query in sorted(groups):
        if query == "unmoved":
            continue
        moved, unmoved = (
            groups[case, maps, partitions, query],
            groups[case, maps, partitions, "unmoved"],
        )
        names = sorted({name for row in moved for name in row["task_ms"]})
        spent = {
            name: round(statistics.median(row["task_ms"].get(name, 0) for row in moved), 1)
            for name in names
        }
        base = {
            name: round(statistics.median(row["task_ms"].get(name, 0) for row in unmoved), 1)
            for name in names
        }
        line = {
            "case": case,
            "maps": maps,
            "partitions": partitions,
            "seconds": round(middle(moved, "seconds"), 4),
            "unmoved_seconds": round(middle(unmoved, "seconds"), 4),
            "tax_seconds": round(middle(moved, "seconds") - middle(unmoved, "seconds"), 4),
            "tasks": middle(moved, "tasks"),
            "unmoved_tasks": middle(unmoved, "tasks"),
            "task_ms": spent,
            "unmoved_task_ms": {name: ms for name, ms in base.items() if ms},
        }
        value["summary"].append(line)
        print(
            f"{case:<14} {maps:>4} x {partitions:<5} {line['seconds']:.3f} s, unmoved {line['unmoved_seconds']:.3f}, exchange {line['tax_seconds']:.3f}; task ms:",
            ", ".join(
                f"{name} {ms:.0f}" + (f" ({base[name]:.0f})" if base[name] else "")
                for name, ms in spent.items()
                if ms >= 1
            ),
        )
    write(out, value)


def memory(file):
    """Exchanges with more and with less room, and where their bytes went."""
    rows = bench(file)
    for case in dict.fromkeys(row["case"] for row in rows):
        group = [row for row in rows if row["case"] == case]
        spilled, nanos = (
            sum(row[f"spill_host_{what}"] for row in group) for what in ("bytes", "nanos")
        )
        print(
            f"{case:<14} device peak {max(row['pool_device_peak_bytes'] for row in group) / 1e6:.0f} MB, "
            f"overflow {middle(group, 'overflow_bytes') / 1e6:.0f} MB, of it to files "
            f"{middle(group, 'overflow_file_bytes') / 1e6:.0f}; staged {middle(group, 'staged_bytes') / 1e6:.0f}; "
            f"moved to host {spilled / 1e6:.0f} MB at {spilled / max(1, nanos):.1f} GB/s, to files "
            f"{sum(row['spill_files_bytes'] for row in group) / 1e6:.0f} MB; "
            f"failed tasks {sum(row['failed_tasks'] for row in group)}"
        )
    return rows


def neighbour(out, commit_file, file):
    """An executor whose pool is too small, beside one that has room: what borrowed memory changes."""
    rows, groups = timed(file)
    by_case = {}
    for key, group in groups.items():
        by_case.setdefault(key[-1], []).extend(group)
    full = by_case.get("full")
    print(
        f"{'case':<8} {'stages ms':>10} {'(range)':>12} {'of full':>8} {'write':>6} {'read':>6}"
        f" {'borrowed MB':>12} {'to host MB':>11} {'failed tasks':>13}"
    )
    table = []
    for case, group in by_case.items():
        stages = [row["exchange_ms"] for row in group]
        ratio = middle(group, "exchange_ms") / middle(full, "exchange_ms") if full else None
        line = {
            "case": case,
            "runs": len(group),
            "exchange_ms": middle(group, "exchange_ms"),
            "write_ms": middle(group, "write_ms"),
            "read_ms": middle(group, "read_ms"),
            "of_full": round(ratio, 3) if ratio else None,
            "borrowed_bytes": middle(group, "pool_device_borrowed_written_bytes"),
            "overflow_bytes": middle(group, "overflow_bytes"),
            "failed_tasks": sum(row["failed_tasks"] for row in rows if row["case"] == case),
        }
        table.append(line)
        print(
            f"{case:<8} {line['exchange_ms']:>10.0f} {f'{min(stages)}-{max(stages)}':>12}"
            f" {line['of_full'] or 0:>8.2f} {line['write_ms']:>6.0f} {line['read_ms']:>6.0f}"
            f" {line['borrowed_bytes'] / 1e6:>12.0f} {line['overflow_bytes'] / 1e6:>11.0f}"
            f" {line['failed_tasks']:>13}"
        )
    found = {line["case"]: line for line in table}
    goal = {
        "goal": "stages with a pool of a fifth on one executor and a neighbour that lends, over those with full pools",
        "at_most": 1.15,
        "value": found.get("borrow", {}).get("of_full"),
    }
    print(f"goal: {goal['goal']}: {goal['value']} (at most {goal['at_most']})")
    if os.environ.get("SMOKE"):
        print("a test of the script: nothing is written, since no rows were in GPU memory")
        return
    write(out, measurement("neighbour", commit_file, rows) | {"cases": table, "goals": [goal]})
    wrong = [line["case"] for line in table if line["failed_tasks"]]
    if wrong:
        sys.exit(f"tasks failed: {wrong}")
    if not found.get("borrow", {}).get("borrowed_bytes"):
        sys.exit("nothing was borrowed")


def checksums(retry, timings):
    """Who ran again when an executor was lost, and what exchanges cost, without checksums and with."""
    rows = []
    if pathlib.Path(retry).exists():
        rows = [
            {"run": "retry", **row} for row in json.loads(pathlib.Path(retry).read_text())["rows"]
        ]
    else:
        print("retry: no result")
    return rows + [{"run": "cost", **row} for row in bench(timings)]


def demo(out, file):
    """Zerohop beside another shuffle, for people: a table, and a plot beside the measurement."""
    rows, groups = timed(file)
    cases = list(dict.fromkeys(row["case"] for row in rows))
    other, found = cases[0], {}
    print(
        f"\n{'query':<12} partitions   GB  {other + ' ms':>20}  {'zerohop ms':>10}  times faster  over NVLink"
    )
    for key in dict.fromkeys(key[:-1] for key in groups):
        of = {case: groups[key + (case,)] for case in cases}
        times = {case: [row["exchange_ms"] for row in of[case]] for case in cases}
        middles = {case: statistics.median(times[case]) for case in cases}
        ours = of["zerohop"][-1]
        share = ours["peer_bytes"] / max(
            1, ours["peer_bytes"] + ours["local_bytes"] + ours["staged_bytes"]
        )
        print(
            f"{key[0]:<12} {key[3]:>10,} {ours['shuffle_bytes'] / 1e9:>4.1f}  {middles[other]:>20.0f}"
            f"  {middles['zerohop']:>10.0f}  {middles[other] / middles['zerohop']:>12.1f}  {share:>11.0%}"
        )
        found[f"{key[0]} to {key[3]:,}"] = {
            case: (middles[case], spread(times[case])) for case in cases
        }
    picture = pathlib.Path(out).with_suffix(".svg")
    picture.write_text(bars(found, cases, "Stages of an exchange (less is better)", "ms"))
    print(f"\nEvery result is the same with both. The plot is {picture}")
    return rows
