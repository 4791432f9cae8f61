"""What the design promises, and what was measured."""

from collections.abc import Iterator

from scipy.stats import beta

from examples.benchmarks.peers.results import Results, seconds_to_1000

LARGE = ("logistic-20", 1_000_000)
Row = tuple[str, str, str]


def promises(results: Results) -> list[Row]:
    """What, measured, bar; only what there are cells for."""
    return [*draws(results), *peers(results), *set_up(results), *audits(results)]


def draws(results: Results) -> Iterator[Row]:
    """Time of a draw over the numbers of rows."""
    times = {}
    for key, cell in results.cells.items():
        if key[0] == "logistic-20" and key[2] == "ours" and "failed" not in cell:
            times[key[1]] = 1e6 * cell["sampling_seconds"] / cell["n_draws"]
    if len(times) > 1:
        sizes = sorted(times)
        what = f"time of a draw, N = {sizes[-1]:,} to N = {sizes[0]:,}, D = 20"
        yield what, f"{times[sizes[-1]] / times[sizes[0]]:.2f} x", "1.5 x"
        worst = max(times.values()) / min(times.values())
        yield "the same, slowest to fastest N", f"{worst:.2f} x", "1.5 x"
    if LARGE[1] in times:
        yield "time of a draw, N = 1,000,000, D = 20", f"{times[LARGE[1]]:.0f} µs", "25 µs"


def peers(results: Results) -> Iterator[Row]:
    """Speed and time to 1,000 effective draws at a million rows."""
    ours = results.get(*LARGE, "ours")
    for name, bar in (("hmcecs", "at least 25 x"), ("nutpie", "at least 10,000 x")):
        peer = results.get(*LARGE, name)
        if ours and peer:
            speed = ours["ess_per_second_median"] / peer["ess_per_second_median"]
            yield f"ESS/s at N = 1,000,000, D = 20, to {name}", f"{speed:,.1f} x", bar
            if name == "nutpie":
                share = seconds_to_1000(ours) / seconds_to_1000(peer)
                yield "time to 1,000 effective draws, to nutpie", f"{share:.3f} x", "0.1 x"
    found = results.errors(*LARGE, "ours")
    if found:
        yield "error of means at N = 1,000,000, D = 20", f"{found[0]:.3f} sds", "0.1 sds"
        yield "error of sds", f"{100 * found[1]:.1f} %", "5 %"


def set_up(results: Results) -> Iterator[Row]:
    """Set-up in units of gradients on all rows."""
    ours, gradient = results.get(*LARGE, "ours"), results.get(*LARGE, "gradient")
    if ours and gradient:
        n_gradients = ours["setup_seconds"] / gradient["gradient_seconds"]
        yield "set-up at N = 1,000,000, D = 20, in gradients", f"{n_gradients:.0f}", "150"
        few = results.get(LARGE[0], 10_000, "ours")
        if few:
            graph = few["setup_seconds"] / gradient["gradient_seconds"]
            yield "of these as many as at N = 10,000 (work on the graph)", f"{graph:.0f}", ""


def audits(results: Results) -> Iterator[Row]:
    """KDD Cup 99: rows of a decision, and wrong ones."""
    for (_, _, name), cell in sorted(results.cells.items(), reverse=True):
        if not name.startswith("audit") or "failed" in cell:
            continue
        wrong, n, epsilon = cell["n_wrong"], cell["n_audited"], cell["epsilon"]
        most = float(beta.ppf(0.95, wrong + 1, n - wrong))
        yield (
            f"KDD Cup 99: rows of a decision, epsilon {epsilon}",
            f"{cell['rows_per_decision']:,.0f}",
            "500" if epsilon == 0.05 else "1,500",
        )
        yield (
            f"KDD Cup 99: wrong decisions, epsilon {epsilon}",
            f"{wrong} of {n} (95 % sure: below {100 * most:.1f} %)",
            f"{100 * epsilon:g} %",
        )
