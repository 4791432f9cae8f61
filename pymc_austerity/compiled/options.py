"""How functions are compiled that only compiled code calls."""

from typing import Any

__all__ = ["INNER"]

INNER: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Without what Python or C would need to call them, which takes most of the time to compile."""
