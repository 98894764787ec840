"""Tables of a Markdown page and what stands in their cells."""


def markdown(heading, body):
    """A table whose first column is of words and whose others are of numbers."""
    rule = ["---"] + ["---:"] * (len(heading) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [heading, rule, *body])


def cell(by_case, case):
    if case not in by_case:
        return "-"
    value, s = by_case[case]
    return f"{value:.2f} ± {100 * s / 2:.0f} %"


def shown(value):
    return "-" if value is None else f"{value:.2f}"
