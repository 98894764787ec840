"""Tables of copies and signals by GPUs, without Spark."""

from charts import bars, lines
from samples import in_order
from tables import markdown


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


def host_link(run, folder):
    body = [
        [
            row["case"].replace("_", " "),
            f"{row['block_bytes'] >> 10:,}" if row["sms"] else "one block",
            str(row["sms"] or "-"),
            f"{row['gbps']:.1f}",
            f"{row['gbps_least']:.1f} to {row['gbps_most']:.1f}",
            f"{row['share_of_peak']:.3f}",
        ]
        for row in run["rows"]
        if "gbps" in row
    ]
    pin = next(row for row in run["rows"] if row["case"] == "pin")
    return (
        f"Pinning a segment of {pin['bytes'] >> 20} MiB takes {pin['ms']:.1f} ms.\n\n"
        + markdown(["case", "blocks, KiB", "SMs", "GB/s", "spread", "share of the engine's"], body)
    )


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
        [
            f"{row['blocks']:,} of 1 to {row['block_bytes']:,} bytes",
            sms_name(row),
            f"{row['gbps']:.0f}",
            f"{row['gbps'] / peak:.3f}",
            f"{row['gbps_submitted'] / peak:.3f}",
        ]
        for row in zipf
    ]
    submit = [
        [
            row["case"].removesuffix("_submit"),
            f"{row['block_bytes']:,}",
            f"{row['blocks']:,}",
            f"{row['us']:.0f}",
            f"{row['us_per_block']:.3f}",
        ]
        for row in rows
        if row["case"].endswith("_submit") and "by_sms" not in row["case"]
    ]
    return "\n\n".join(
        [
            f"GB/s, and the share of the copy engine's peak on one block of 2 GiB, {peak:.0f} GB/s:",
            markdown(["bytes of a block", *cases], body),
            "![over SMs](measurements/gather_sms.svg)",
            "Sizes by Zipf's law at odd places; the last column counts the host's work as well:",
            markdown(["blocks", "", "GB/s", "share", "with submitting"], zipf_body),
            "What the host pays to submit a window:",
            markdown(["case", "bytes of a block", "blocks", "us", "us a block"], submit),
        ]
    )


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
            ratios = (
                [
                    f"{cells[case][0] / cells['nccl'][0]:.2f}" if case in cells else "-"
                    for case in cases[:3]
                ]
                if "nccl" in cells
                else ["-"] * 3
            )
            body.append(
                [
                    f"{gpus}",
                    f"{size >> 20:,} MiB",
                    *(f"{cells[c][0]:.0f}" if c in cells else "-" for c in cases),
                    *ratios,
                ]
            )
    gigabyte = by([row for row in main_rows if row["bytes_per_rank"] == 1 << 30], "gpus", name)
    (folder / "alltoall.svg").write_text(
        bars(gigabyte, cases, "All to all, 1 GiB a rank, over the number of GPUs", "GB/s")
    )
    curve = [
        row
        for row in rows
        if row["case"] == "zerohop"
        and row["block_bytes"] == 256 << 10
        and row["bytes_per_rank"] == 1 << 30
    ]
    sms = sorted({row["sms"] for row in curve})
    counts = in_order(row["gpus"] for row in curve)
    sms_body = [
        [
            f"{gpus} GPUs",
            *(
                next(
                    (
                        f"{row['gbps']:.0f}"
                        for row in curve
                        if row["gpus"] == gpus and row["sms"] == n
                    ),
                    "-",
                )
                for n in sms
            ),
        ]
        for gpus in counts
    ]
    heading = [
        "GPUs",
        "a rank",
        *(f"{c}, GB/s" for c in cases),
        *(f"{c} / nccl" for c in cases[:3]),
    ]
    return "\n\n".join(
        [
            "Bytes that each GPU gets from others, over the time of the slowest; 24 SMs:",
            markdown(heading, body),
            "1 GiB a rank in blocks of 256 KiB, GB/s over the number of SMs:",
            markdown(["", *map(str, sms)], sms_body),
        ]
    )


def signal(run, folder):
    body = [
        [
            row["case"].replace("_", " "),
            f"{row['round_trip_us']:.2f}",
            f"{row['round_trip_us_least']:.2f} to {row['round_trip_us_most']:.2f}",
        ]
        for row in run["rows"]
    ]
    return markdown(["round trip between two GPUs", "us", "spread"], body)
