"""Results of passes in a folder: what set-up finds again after it was killed, and what not."""

import itertools
import os

import numpy as np
import pytest

from pymc_austerity.errors import SettingError, SettingTypeError, StorageError
from pymc_austerity.setup import source_rows
from pymc_austerity.setup.pass_cache import PassCache
from pymc_austerity.setup.prepared import prepare
from tests.running import assert_same_draws, built, sample
from tests.setup.sources import Recorded, logistic, rows_of_regression

RANGES = [(0, 4), (4, 8), (8, 12), (12, 13)]


class Pass:
    """Squares of the first rows of pieces, and a record of what was computed."""

    def __init__(self, scale=1.0):
        self.scale, self.computed = scale, []

    def __call__(self, ranges):
        for start, stop in ranges:
            self.computed.append((start, stop))
            yield self.scale * stop**2.0, np.arange(stop)


def results(folder, run, *arguments, about="a", n=None):
    """All results of a pass, or the first ones: the process ends then."""
    kept = PassCache(folder, about)
    return list(
        itertools.islice(kept.results(arguments or ("squares", np.ones(2)), RANGES, run), n)
    )


def assert_equal(found, expected):
    for (one, array), (other, expected_array) in zip(found, expected, strict=True):
        assert one == other
        np.testing.assert_array_equal(array, expected_array)


class TestFound:
    def test_a_pass_that_has_ended(self, tmp_path):
        results(tmp_path, Pass())
        run = Pass()
        assert_equal(results(tmp_path, run), Pass()(RANGES))
        assert run.computed == RANGES[:1]  # to be compared
        assert len(list(tmp_path.iterdir())) == 1

    def test_nothing_of_a_pass_that_was_killed(self, tmp_path):
        results(tmp_path, Pass(), n=3)
        assert not list(tmp_path.iterdir())
        run = Pass()
        assert_equal(results(tmp_path, run), Pass()(RANGES))
        assert run.computed == RANGES

    @pytest.mark.parametrize(
        ("about", "arguments", "is_found"),
        [
            ("a", ("squares", np.array([1.0, 1.0])), True),
            ("b", ("squares", np.array([1.0, 1.0])), False),
            ("a", ("squares", np.array([1.0, 1.0 + 2.3e-16])), False),
            ("a", ("squares", np.array([[1.0, 1.0]])), False),
            ("a", ("cubes", np.array([1.0, 1.0])), False),
        ],
    )
    def test_only_with_the_same_arguments(self, tmp_path, about, arguments, is_found):
        results(tmp_path, Pass())
        run = Pass()
        results(tmp_path, run, *arguments, about=about)
        assert (len(run.computed) == 1) is is_found

    def test_only_if_a_piece_gives_the_same_again(self, tmp_path):
        results(tmp_path, Pass(scale=1.0))
        for _ in range(2):
            assert_equal(results(tmp_path, Pass(scale=2.0)), Pass(scale=2.0)(RANGES))


class TestToWhichSetUp:
    """What decides whether results are those of this set-up."""

    @pytest.fixture(scope="class")
    @staticmethod
    def data():
        return rows_of_regression(3_000)

    @pytest.fixture
    def files(self, data, tmp_path):
        paths = {name: tmp_path / f"{name}.npy" for name in data}
        for name, array in data.items():
            np.save(paths[name], array)
        return paths

    def is_found(self, model, files, folder, **settings):
        """Whether there was a file for the first pass."""
        before = set(folder.glob("*"))
        prepare(model, data=files, setup_folder=folder, **settings)
        return set(folder.glob("*")) == before

    def test_one_that_was_stopped(self, data, files, tmp_path, monkeypatch, caplog):
        """Draws are those of a set-up that was not stopped."""
        model, folder = logistic(data), tmp_path / "of" / "set-up"
        expected = sample(built(model, data=files), model)
        pass_over, n_pieces = source_rows.pass_over, itertools.count(1)

        def stopped(*args, **kwargs):
            for result in pass_over(*args, **kwargs):
                if next(n_pieces) == 4:
                    raise KeyboardInterrupt
                yield result

        with monkeypatch.context() as patch:
            patch.setattr(source_rows, "pass_over", stopped)
            with pytest.raises(KeyboardInterrupt):
                built(model, data=files, setup_folder=folder)
        with caplog.at_level("INFO", logger="pymc.austerity"):
            step = built(model, data=files, setup_folder=str(folder))
        assert caplog.text.count("Set-up goes on with the results of a pass over the rows") == 3
        assert_same_draws(sample(step, model), expected)

    def test_other_rows_or_times(self, data, files, tmp_path):
        model, folder = logistic(data), tmp_path / "kept"
        assert not self.is_found(model, files, folder)
        assert self.is_found(logistic(data), files, folder)
        status = files["y"].stat()
        np.save(files["y"], ~data["y"])
        os.utime(files["y"], ns=(status.st_atime_ns, status.st_mtime_ns))
        assert not self.is_found(model, files, folder)  # values are looked at
        np.save(files["y"], data["y"])
        os.utime(files["y"], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert not self.is_found(model, files, folder)

    def test_a_source_of_the_users_own(self, data, tmp_path):
        sources = {name: Recorded(array) for name, array in data.items()}
        for name, source in sources.items():
            source.identity = f"{name}, version 3"
        assert not self.is_found(logistic(data), sources, tmp_path)
        assert self.is_found(logistic(data), sources, tmp_path)
        sources["x"].identity = "x, version 4"
        assert not self.is_found(logistic(data), sources, tmp_path)


class TestRefused:
    def test_no_path(self):
        with pytest.raises(SettingTypeError, match="setup_folder=3 is not a path: name a folder"):
            prepare(logistic(rows_of_regression(99)), data={"x": None}, setup_folder=3)

    def test_without_sources(self, tmp_path):
        with pytest.raises(SettingError, match="without data="):
            built(logistic(rows_of_regression(99)), setup_folder=tmp_path)

    def test_rows_that_nothing_tells_from_others(self, tmp_path):
        data = rows_of_regression(300)
        with pytest.raises(
            SettingError, match=r"because another process cannot see .* data\['x'\] has changed"
        ):
            prepare(logistic(data), data=data, setup_folder=tmp_path)

    def test_a_folder_that_cannot_be_used(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match=r"setup_folder=.*cannot be used \("):
            PassCache(tmp_path / "file" / "folder", "a")
