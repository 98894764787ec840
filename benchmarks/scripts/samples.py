"""Rows of a measurement: those that were timed, their medians and their ratios."""

from statistics import median, quantiles

YARDSTICKS = ("sort", "sort_uncompressed")


def spread(values):
    """The interquartile range relative to the median; 0 where there are fewer than 2 values."""
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / median(values)


def timed(rows, **wanted):
    """Rows that were timed (iteration 0 only warms up) and have these fields."""
    return [
        row
        for row in rows
        if row.get("iteration", 0) > 0 and all(row.get(k) == v for k, v in wanted.items())
    ]


def in_order(values):
    """Each value once, where it came first."""
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


def times_as_fast(by_case):
    """The better yardstick's median over Zerohop's, or None where either is missing."""
    yardstick = best_yardstick(by_case)
    if yardstick is None or by_case.get("zerohop", (0,))[0] == 0:
        return None
    return yardstick[0] / by_case["zerohop"][0]
