"""Tables of RAPIDS' exchanges."""

from statistics import median

from samples import in_order, spread
from tables import markdown


def exchange_cell(rows):
    write, read, whole = (
        median(row[field] for row in rows) for field in ("write_ms", "read_ms", "seconds")
    )
    return f"{write:.0f} + {read:.0f} ± {50 * spread([r['exchange_ms'] for r in rows]):.0f} %, {whole:.2f} s"


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
        found = {
            case: [r for r in rows if key_of(r) == key and r["case"] == case] for case in cases
        }
        line = [key[0], f"{key[1]} M", key[2], str(key[3]), key[4]]
        line += [exchange_cell(found[case]) if found[case] else "-" for case in cases]
        for others in yardsticks.values():
            line += [times_faster(found, others, field) for field in ("exchange_ms", "seconds")]
        body.append(line)
    ratios = [f"{what} / {name}" for name in yardsticks for what in ("stages", "whole")]
    return markdown(["query", "rows", "partitions", "executors", "pool", *cases, *ratios], body)


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
        overflow, moved = (
            median(row[f"{what}_bytes"] for row in of[case]) for what in ("overflow", "spill_host")
        )
        body.append(
            [
                case,
                exchange_cell(of[case]),
                *(f"{value / 1e9:.2f}" for value in (peak, overflow, moved)),
                f"{files / stages[case]:.1f}",
            ]
        )
    heading = [
        "case",
        "write + read, whole",
        "peak on the GPU, GB",
        "written to host memory, GB",
        "moved there later, GB",
        "files / this",
    ]
    return markdown(heading, body)


def tax(run, folder):
    """What an exchange costs, and what its tasks spend their time with."""
    body = []
    for line in sorted(
        run["summary"],
        key=lambda each: (each["maps"], each["partitions"], each["case"] != "zerohop"),
    ):
        spent = line["task_ms"]

        def ms(*names):
            return sum(spent.get(name, 0) for name in names)

        read, wait = ms("RAPIDS shuffle shuffle read time"), ms("fetch wait")
        parts = [
            ms("RAPIDS shuffle partition time"),
            ms("shuffle write"),
            wait,
            read - wait,
            ms("aggregation time"),
        ]
        body.append(
            [
                f"{line['maps']} x {line['partitions']:,}",
                line["case"],
                *(f"{line[name]:.3f} s" for name in ("seconds", "unmoved_seconds", "tax_seconds")),
                *(f"{part:,.0f}" for part in parts),
                f"{ms('run') - sum(parts):,.0f}",
                f"{ms('task') - ms('run'):,.0f}",
            ]
        )
    return markdown(
        [
            "shape",
            "shuffle",
            "whole",
            "unmoved",
            "exchange",
            "partition, split",
            "pack, publish",
            "plan, look-up, wait",
            "gather, assemble",
            "RAPIDS' aggregation",
            "rest of the tasks",
            "Spark",
        ],
        body,
    )
