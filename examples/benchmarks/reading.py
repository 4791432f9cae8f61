"""Reading rows as windows, against gathering them at random."""

import numpy as np

from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm
from examples.benchmarks.report import Measurement
from examples.benchmarks.timing import microseconds_each

TITLE = "reading 500 of 1,000,000 x 20 rows"
N_ROWS = 500


def measure(n_calls: int) -> list[Measurement]:
    """Time to read rows, and to read and evaluate them.

    The rows do not fit into the caches of the processor, and every call reads others.
    """
    x, y = logistic_data(1_000_000)
    with logistic_regression(x, y):
        step = papers_algorithm()
    function, source = step.target.sampling.function, step.target.sampling.draw.source
    del x, y
    rng = np.random.default_rng(1)
    current, proposed = 0.3 * rng.standard_normal((2, 20))
    same = source.window(0, N_ROWS)

    def window(start: int, _: np.ndarray) -> tuple:
        return source.window(start, start + N_ROWS)

    def take(_: int, positions: np.ndarray) -> tuple:
        return source.take(positions)

    functions = {
        "window": window,
        "take": take,
        "evaluate": lambda *_: function(proposed, current, *same),
        "window, evaluate": lambda *where: function(proposed, current, *window(*where)),
        "take, evaluate": lambda *where: function(proposed, current, *take(*where)),
    }
    inputs = [
        (int(rng.integers(source.n_rows - N_ROWS)), rng.choice(source.n_rows, N_ROWS))
        for _ in range(n_calls)
    ]
    time = microseconds_each(functions, inputs)
    return [
        Measurement("evaluate rows that are in the cache", time["evaluate"], "µs"),
        Measurement("read a window (a view)", time["window"], "µs"),
        Measurement("read a window, evaluate", time["window, evaluate"], "µs"),
        Measurement("gather rows at random positions", time["take"], "µs"),
        Measurement("gather, evaluate", time["take, evaluate"], "µs"),
        Measurement(
            "window to evaluation in the cache", time["window, evaluate"] / time["evaluate"]
        ),
        Measurement("gathering to windows", time["take, evaluate"] / time["window, evaluate"]),
    ]
