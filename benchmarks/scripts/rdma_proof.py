#!/usr/bin/env python3
"""Writes what the proof kit has shown, as a measurement and as the table of docs/rdma-proof.md.

rdma_proof.py OUT.json COMMIT CASE=FILE ...: each FILE is what `rdma-proof` has printed.
"""

import json
import pathlib
import sys

from measurements import write
from plot import replace_section
from tables import markdown

PAGE = pathlib.Path(__file__).resolve().parent / "../../docs/rdma-proof.md"
CHECKS = ["contents", "one-sided", "killed", "job"]
MARKS = {"passed": "passed", "failed": "**failed**", "skipped": "not tried"}


def result(findings, check, memory):
    """The worst of both directions."""
    results = [
        row["result"]
        for row in findings
        if row["check"] == check and row.get("memory", memory) == memory
    ]
    worst = [name for name in ("failed", "skipped", "passed") if name in results]
    return MARKS[worst[0]] if worst else "not tried"


def best(findings, memory):
    rates = [
        row["value"]
        for row in findings
        if row["check"] == "rate" and row.get("unit") == "GB/s" and row.get("memory") == memory
    ]
    return f"{max(rates):.2f}" if rates else "-"


def table(proofs):
    body = []
    for case, proof in proofs.items():
        findings = proof["findings"]
        for memory in ("host", "gpu"):
            if any(row["check"] == "ucx" and row.get("memory") == memory for row in findings):
                results = [result(findings, check, memory) for check in CHECKS]
                verdict = proof["memory"][memory]
                body.append([case, memory, *results, best(findings, memory), verdict])
    return markdown(["where", "memory", *[f"`{it}`" for it in CHECKS], "GB/s", "verdict"], body)


def main(out, commit, *files):
    proofs = {}
    for each in files:
        case, file = each.split("=", 1)
        proofs[case] = json.loads(pathlib.Path(file).read_text().strip().splitlines()[-1])
    rows = []
    for case, proof in proofs.items():
        rows.append({"case": case} | {name: proof[name] for name in proof if name != "findings"})
        rows += [{"case": case} | row for row in proof["findings"]]
    write(
        out,
        {
            "bench": "rdma_proof",
            "commit": commit,
            "date": max(proof["date"] for proof in proofs.values()),
            "host": {"adapter": "none of hardware"},
            "goals": [
                {
                    "goal": "proofs that were made without a hardware adapter and say proven",
                    "at_most": 0,
                    "value": sum(proof["verdict"] == "proven" for proof in proofs.values()),
                },
                {
                    "goal": "proofs in which a check failed that must not",
                    "at_most": 0,
                    "value": sum(proof["verdict"] == "failed" for proof in proofs.values()),
                },
            ],
            "rows": rows,
        },
    )
    PAGE.write_text(replace_section(PAGE.read_text(), "rdma_proof", table(proofs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
