"""Picture, table and the paper's claims in numbers."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from examples.average_and_worst_case_designs.designs import HEURISTIC, TARGETS, Measured

Found = dict[str, dict[str, list[Measured]]]
"""Measured tests by data set and kind of design, one for each target."""


def picture(by_data: Found) -> Figure:
    """Error and data usage on new decisions over the target, one row for each data set."""
    shape = (len(by_data), 2)
    figure, axes = plt.subplots(*shape, figsize=(9, 3.6 * len(by_data)), layout="constrained")
    for (left, right), (name, found) in zip(axes, by_data.items(), strict=True):
        for marker, (kind, each) in zip("os^d", found.items(), strict=True):
            errors = np.array([m.error for m in each])
            bars = [2.0 * m.standard_error for m in each]
            left.errorbar(TARGETS, errors, bars, marker=marker, label=kind, capsize=2)
            right.plot(TARGETS, [m.data_fraction for m in each], marker=marker, label=kind)
        left.plot(TARGETS, TARGETS, "0.6", lw=0.8)
        left.set(yscale="log", ylabel="error on new decisions", title=name)
        right.set(ylim=(0, 1), ylabel="share of the rows read")
        for axis in (left, right):
            axis.set(xscale="log", xlabel="target")
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def table(by_data: Found) -> str:
    """What was designed and measured, as Markdown."""
    lines = [
        "| data | design | target | batch | epsilon | alpha | error on new decisions "
        "| wrong decisions | rows read |",
        "| --- " * 9 + "|",
    ]
    for name, found in by_data.items():
        for kind, each in found.items():
            for target, m in zip(TARGETS, each, strict=True):
                d = m.design
                lines.append(
                    f"| {name} | {kind} | {target:.1%} | {d.batch_size:,} | {d.epsilon:.3g} "
                    f"| {d.alpha:g} | {m.error:.2%} ± {m.standard_error:.2%} | {m.wrong:.1%} "
                    f"| {m.data_fraction:.1%} |"
                )
    return "\n".join(lines) + "\n"


def verdict(by_data: Found) -> str:
    """The paper's claims in numbers."""
    sentences = []
    for name, found in by_data.items():
        average, worst = found["average"], found["worst case"]
        ratios = [m.error / t for m, t in zip(average, TARGETS, strict=True)]
        saved = [w.data_fraction / a.data_fraction for w, a in zip(worst, average, strict=True)]
        fixed = [
            m.data_fraction / a.data_fraction
            for m, a in zip(found[f"{HEURISTIC} rows a look"], average, strict=True)
        ]
        low = max(m.error / t for m, t in zip(worst, TARGETS, strict=True))
        sentences.append(
            f"{name}: the average design's error on new decisions is {min(ratios):.2f} to "
            f"{max(ratios):.2f} times its target, the worst-case design's at most {low:.2f} times. "
            f"The worst-case design reads {min(saved):.1f} to {max(saved):.1f} times as many rows "
            f"as the average one, {HEURISTIC} rows a look {min(fixed):.2f} to {max(fixed):.2f} "
            "times."
        )
    return "\n\n".join(sentences) + "\n"
