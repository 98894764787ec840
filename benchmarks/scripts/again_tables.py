"""Tables of measurements that were made again with later code, both trees in turns."""

from math import prod

from samples import in_order
from tables import markdown


def host_again(run, folder):
    """How many times as fast as sort shuffle queries are, by commit and turn; and the mean of all."""
    groups = {}
    for row in run["rows"]:
        groups.setdefault((row["of"], row["commit"][:7], row.get("turn", "-")), {}).setdefault(
            row["query"], {}
        )[row["case"]] = row["seconds"]
    body = []
    for (of, commit, turn), queries in groups.items():
        ratios = {query: found["sort"] / found["zerohop"] for query, found in queries.items()}
        mean = prod(ratios.values()) ** (1 / len(ratios))
        single = ", ".join(
            f"{query} {ratios[query]:.2f}" for query in ("q1", "q5", "q21") if query in ratios
        )
        body.append([of, commit, str(turn), str(len(ratios)), f"{mean:.2f}", single or "-"])
    return markdown(
        ["of", "commit", "turn", "queries", "times as fast as sort shuffle", "single queries"],
        body,
    )


def gpu_blocks_again(run, folder):
    """Both stages of an exchange, in the order of the turns."""
    rows = [row for row in run["rows"] if "turn" in row]
    trees = in_order((row["turn"], row["commit"][:7]) for row in rows)
    body = []
    for query in in_order(row["query"] for row in rows):
        found = {(row["turn"], row["commit"][:7]): row for row in rows if row["query"] == query}
        body.append(
            [query]
            + [
                f"{found[tree]['exchange_ms']:.0f} ({found[tree]['exchange_ms_min']} to {found[tree]['exchange_ms_max']})"
                for tree in trees
            ]
        )
    return markdown(
        ["both stages, ms"] + [f"{commit}, turn {turn}" for turn, commit in trees], body
    )
