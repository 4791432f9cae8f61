"""Two ways of taking the time: of a function alone, and of parts while the whole runs."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

N_REPEATS = 7


def microseconds(function: Callable[..., Any], inputs: Sequence[tuple]) -> float:
    """Time of one call: the best of several rounds over all the inputs."""
    return microseconds_each({"": function}, inputs)[""]


def microseconds_each(
    functions: dict[str, Callable[..., Any]], inputs: Sequence[tuple]
) -> dict[str, float]:
    """Times of one call of each function, which take turns, so that all see the same machine."""
    best = dict.fromkeys(functions, float("inf"))
    for function in functions.values():
        function(*inputs[0])  # compile
    for _ in range(N_REPEATS):
        for name, function in functions.items():
            started = time.perf_counter()
            for values in inputs:
                function(*values)
            best[name] = min(best[name], time.perf_counter() - started)
    return {name: 1e6 * seconds / len(inputs) for name, seconds in best.items()}


class Stopwatch:
    """Sums up the time that is spent in wrapped functions.

    Attributes
    ----------
    seconds : Counter
        Time in each part, in the parts inside of it as well.
    first, last : float
        Beginning of the first call and end of the last one, of any part.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.seconds: Counter[str] = Counter()
        self.first = float("inf")
        self.last = 0.0

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time taken."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                ended = time.perf_counter()
                self.seconds[part] += ended - started
                self.first = min(self.first, started)
                self.last = ended

        return timed
