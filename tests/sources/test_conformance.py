"""Every kind of source reads the same rows in the same way."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from pymc_austerity.sources import open_source, take
from tests.running import START_METHODS
from tests.sources.elsewhere import read_pickled
from tests.sources.stores import CUTS, KINDS, N_ROWS, ROWS

# dask's reader of Parquet, with a recent pandas
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

RANGES = [(0, N_ROWS), (0, 1), (N_ROWS - 1, N_ROWS), (100, 200), (99, 101), (37, 742), (5, 5)]
RANGES += [(cut - 1, cut + 1) for cut in CUTS[1:-1]]
CARRY_ROWS = {"arrays", "views", "arrow_table", "arrow_dictionaries", "pandas_table"}
CARRY_ROWS |= {"pandas_nullable", "xarray_loaded", "arrow_of_another_library"}


@pytest.fixture(scope="module", params=KINDS)
def sources(request, tmp_path_factory):
    """The sources of one kind of store, by the name of their data."""
    given = KINDS[request.param](tmp_path_factory.mktemp(request.param))
    opened = {name: open_source(one, name) for name, one in given.items()}
    return opened


@pytest.fixture(scope="module")
def other_process():
    """A process that has nothing but what is pickled for it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def assert_rows(found, expected):
    assert found.dtype == expected.dtype
    assert found.dtype.isnative
    assert type(found) is np.ndarray
    assert found.flags.c_contiguous and found.flags.writeable
    np.testing.assert_array_equal(found, expected)


def send_rows(sources, connection):
    indices = np.array([900, 3])
    connection.send({name: (s.read(50, 250), take(s, indices)) for name, s in sources.items()})


def test_it_has_the_facts_of_the_rows(sources):
    for name, source in sources.items():
        assert (source.n_rows, source.row_shape) == (N_ROWS, ROWS[name].shape[1:])
        assert source.dtype == ROWS[name].dtype
        assert source.block_length is None or 0 < source.block_length <= N_ROWS
        source.refuse_if_changed()


def test_it_reads_ranges_of_rows(sources):
    for name, source in sources.items():
        for start, stop in RANGES:
            assert_rows(source.read(start, stop), ROWS[name][start:stop])


def test_it_reads_block_by_block(sources):
    for name, source in sources.items():
        for step in (64, 100, 333):
            blocks = [source.read(a, min(a + step, N_ROWS)) for a in range(0, N_ROWS, step)]
            assert_rows(np.concatenate(blocks), ROWS[name])


def test_it_takes_rows_in_the_order_asked_for(sources, rng):
    for name, source in sources.items():
        for indices in ([], [0], [N_ROWS - 1, 0, 500, 500], rng.choice(N_ROWS, 300)):
            indices = np.asarray(indices, dtype=np.intp)
            assert_rows(take(source, indices), ROWS[name][indices])


def test_what_is_read_is_a_copy(sources):
    for name, source in sources.items():
        for rows in (source.read(0, 100), source.read(20, 30), take(source, np.arange(20, 30))):
            rows[...] = 0
        assert_rows(source.read(0, 100), ROWS[name][:100])


def test_rows_that_are_not_there_are_refused(sources):
    for source in sources.values():
        for start, stop in ((-1, 5), (0, N_ROWS + 1), (6, 5)):
            with pytest.raises(IndexError):
                source.read(start, stop)
        for index in (-1, N_ROWS):
            with pytest.raises(IndexError):
                take(source, np.array([index]))


def test_another_process_opens_it_again(sources, other_process, request):
    kind = request.node.callspec.params["sources"]
    for name, source in sources.items():
        source.read(0, 150)  # what is kept in memory stays here
        take(source, np.array([3]))
        pickled = pickle.dumps(source)
        if kind not in CARRY_ROWS and "dask" not in kind:
            assert len(pickled) < ROWS[name].nbytes or ROWS[name].nbytes < 10_000
        forward, backward = other_process.submit(read_pickled, pickled, 95, 320).result(60)
        assert_rows(forward, ROWS[name][95:320])
        np.testing.assert_array_equal(backward, ROWS[name][95:320][::-1])


@pytest.mark.skipif("fork" not in START_METHODS, reason="processes are not forked here")
def test_a_forked_process_reads_it(sources):
    context = multiprocessing.get_context("fork")
    for source in sources.values():
        source.read(30, 70)
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=send_rows, args=(sources, there))
    child.start()
    assert here.poll(60), "the forked process hangs"
    received = here.recv()
    child.join()
    for name, (rows, taken) in received.items():
        assert_rows(rows, ROWS[name][50:250])
        np.testing.assert_array_equal(taken, ROWS[name][[900, 3]])


def test_threads_read_it_at_once(sources):
    starts = np.random.default_rng(3).integers(0, N_ROWS - 170, size=12)
    with ThreadPoolExecutor(4) as pool:
        for name, source in sources.items():
            blocks = list(pool.map(lambda a, s=source: s.read(a, a + 170), starts.tolist()))
            for start, block in zip(starts, blocks, strict=True):
                assert_rows(block, ROWS[name][start : start + 170])
