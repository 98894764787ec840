"""Charts as SVG: grouped bars and lines."""

import math

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
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 360, 70, 20, 50, 60


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
            parts.append(f'<path d="M{bar + width / 2:.1f} {low:.1f}V{high:.1f}" stroke="#222"/>')
        parts.append(
            text(x + slot * 0.4, HEIGHT - BOTTOM + 16, str(key).replace("_", " "), size=10)
        )
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
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[case]}"/>' for x, y in points
        ]
    parts += [text(across(key), HEIGHT - BOTTOM + 18, f"{key:,}") for key in keys]
    parts.append(text(WIDTH / 2, HEIGHT - 12, x_label))
    return svg(parts + legend(cases), title)
