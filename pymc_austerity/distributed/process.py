"""Settings of a worker's process while it evaluates blocks of rows."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

_TRIM, _MMAP = -1, -3
"""Numbers of glibc's parameters (``malloc.h``)."""

_MMAP_BY_DEFAULT = 128 * 1024
_KEPT = 2**27

_change = threading.Lock()
_users = 0
_limits: Any = None


@contextmanager
def for_blocks() -> Iterator[None]:
    """Leave linear algebra one thread, and keep memory that was freed, while any task runs.

    Dask makes workers return freed memory to the system at once. Blocks then get
    new pages for every intermediate array, which takes several times as long as the computations.
    """
    global _users, _limits  # settings belong to the process, and tasks run in several threads
    with _change:
        if not _users:
            _limits = threadpool_limits(1, user_api="blas")
            _keep_memory(keep=True)
        _users += 1
    try:
        yield
    finally:
        with _change:
            _users -= 1
            if not _users:
                _limits.restore_original_limits()
                _keep_memory(keep=False)


def _keep_memory(*, keep: bool) -> None:
    """Change what Dask has set, and nothing where it has set nothing."""
    set_by_dask = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or not set_by_dask.isdecimal():
        return
    mallopt(_TRIM, _KEPT if keep else int(set_by_dask))
    mallopt(_MMAP, _KEPT // 4 if keep else _MMAP_BY_DEFAULT)
