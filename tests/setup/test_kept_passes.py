"""Results of passes on disk: what is found again, and what is not."""

import os
import time
from itertools import islice

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from pymc_austerity.errors import SettingError, SettingTypeError, StorageError
from pymc_austerity.setup import kept_for, kept_passes
from pymc_austerity.setup.kept_passes import KeptPasses
from pymc_austerity.setup.prepared import prepare
from tests.setup.sources import Recorded, logistic, rows_of_regression

RANGES = [(0, 4), (4, 8), (8, 12), (12, 13)]


class Pass:
    """Squares of the first rows of pieces, and a record of what was computed."""

    def __init__(self, scale=1.0):
        self.scale, self.computed = scale, []

    def __call__(self, ranges):
        for start, stop in ranges:
            self.computed.append((start, stop))
            yield self.scale * np.array([float(start), stop]) ** 2, stop - start


def results(kept, run, *arguments, n=None):
    """All results of a pass, or the first ones: the pass is left then."""
    return list(islice(kept.results(arguments or ("squares", np.ones(2)), RANGES, run), n))


def assert_equal(found, expected):
    for (one, n_rows), (other, n_expected) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert n_rows == n_expected


@pytest.fixture
def every_piece(monkeypatch):
    monkeypatch.setattr(kept_passes, "_SECONDS_BETWEEN_WRITES", 0.0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


class TestFound:
    def test_a_whole_pass(self, tmp_path, caplog):
        expected = results(KeptPasses("a", tmp_path), Pass())
        run, kept = Pass(), KeptPasses("a", tmp_path)
        with caplog.at_level("INFO", logger="pymc.austerity"):
            assert_equal(results(kept, run), expected)
            kept.end()
        assert len(run.computed) == 1  # to be compared
        assert "Set-up goes on with results of 1 pass over the rows, which were" in caplog.text

    def test_a_part_of_a_pass(self, tmp_path, every_piece, caplog):
        expected = list(Pass()(RANGES))
        results(KeptPasses("a", tmp_path), Pass(), n=2)
        run = Pass()
        with caplog.at_level("INFO", logger="pymc.austerity"):
            assert_equal(results(KeptPasses("a", tmp_path), run), expected)
        assert run.computed[-2:] == RANGES[2:]
        assert "results of 0 passes over the rows and 50% of another one" in caplog.text
        again = Pass()
        assert_equal(results(KeptPasses("a", tmp_path), again), expected)
        assert len(again.computed) == 1

    def test_parts_that_overlap(self, tmp_path, every_piece):
        one, other = KeptPasses("a", tmp_path), KeptPasses("a", tmp_path)
        both = [kept.results(("squares", np.ones(2)), RANGES, Pass()) for kept in (one, other)]
        for k in range(6):
            next(both[k % 2])
        assert_equal(results(KeptPasses("a", tmp_path), Pass()), list(Pass()(RANGES)))

    @pytest.mark.parametrize(
        ("about", "arguments", "is_found"),
        [
            ("a", ("squares", np.array([1.0, 1.0])), True),
            ("b", ("squares", np.array([1.0, 1.0])), False),
            ("a", ("squares", np.array([1.0, 1.0 + 2.3e-16])), False),
            ("a", ("squares", np.array([[1.0, 1.0]])), False),
            ("a", ("squares", np.array([1, 1])), False),
            ("a", ("cubes", np.array([1.0, 1.0])), False),
        ],
    )
    def test_only_with_the_same_arguments(self, tmp_path, about, arguments, is_found):
        results(KeptPasses("a", tmp_path), Pass())
        run = Pass()
        results(KeptPasses(about, tmp_path), run, *arguments)
        assert (len(run.computed) == 1) is is_found

    def test_only_if_a_piece_gives_the_same_again(self, tmp_path):
        results(KeptPasses("a", tmp_path), Pass())
        run = Pass(scale=1.0 + 1e-15)
        assert_equal(results(KeptPasses("a", tmp_path), run), list(Pass(1.0 + 1e-15)(RANGES)))
        assert run.computed[-4:] == RANGES
        assert_equal(results(KeptPasses("a", tmp_path), run), list(run(RANGES)))

    @pytest.mark.parametrize("number", range(4))
    def test_not_in_files_that_are_damaged(self, tmp_path, every_piece, number):
        results(KeptPasses("a", tmp_path), Pass())
        path = sorted(tmp_path.iterdir())[number]
        for content in (path.read_bytes()[:-1], b"", bytes(200), path.read_bytes()[:-1] + b"x"):
            path.write_bytes(content)
            run = Pass()
            assert_equal(results(KeptPasses("a", tmp_path), run), list(Pass()(RANGES)))
            assert RANGES[number] in run.computed
        assert len(run.computed) == (number > 0) + 4 - number


class TestFolders:
    def test_a_short_set_up_writes_nothing(self, place):
        kept = KeptPasses("a")
        results(kept, Pass())
        assert not list(place.iterdir())

    def test_nothing_stays_when_set_up_has_ended(self, place, every_piece):
        kept = KeptPasses("a")
        results(kept, Pass())
        (folder,) = place.iterdir()
        assert len(list(folder.iterdir())) == 4
        assert folder.stat().st_mode & 0o777 == 0o700
        kept.end()
        assert not list(place.iterdir())

    def test_large_results_are_written_at_once(self, place, monkeypatch):
        monkeypatch.setattr(kept_passes, "_MOST_BYTES_WAITING", 10)
        results(KeptPasses("a"), Pass())
        assert len(list(place.glob("*/*.pass"))) == 4

    def test_those_that_nobody_came_back_to_are_removed(self, place, every_piece):
        results(KeptPasses("a"), Pass())
        (old,) = place.iterdir()
        results(KeptPasses("b"), Pass())
        os.utime(old, (time.time() - 8 * 86_400.0,) * 2)
        KeptPasses("c")
        assert old not in place.iterdir()
        assert len(list(place.iterdir())) == 1

    def test_unfinished_files_are_never_read_and_removed_when_old(self, tmp_path):
        results(KeptPasses("a", tmp_path), Pass())
        (path,) = tmp_path.iterdir()
        unfinished = path.rename(path.with_name(f"{path.name}-17.unfinished"))
        run = Pass()
        results(KeptPasses("a", tmp_path), run)
        assert run.computed == RANGES
        assert unfinished.exists()
        os.utime(unfinished, (0.0, 0.0))
        KeptPasses("a", tmp_path)
        assert not unfinished.exists()

    def test_those_of_others_are_not_read(self, place, every_piece, monkeypatch):
        results(KeptPasses("a"), Pass(), n=2)
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
        run = Pass()
        assert_equal(results(KeptPasses("a"), run), list(Pass()(RANGES)))
        assert run.computed == RANGES

    def test_without_room_set_up_goes_on(self, place, every_piece, monkeypatch, caplog):
        def full(file):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with caplog.at_level("INFO", logger="pymc.austerity"):
            assert_equal(results(KeptPasses("a"), Pass()), list(Pass()(RANGES)))
        assert caplog.text.count("no longer kept") == 1
        assert "(No space left on device): set-up begins anew if it is killed" in caplog.text

    def test_one_that_cannot_be_used(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match=r"setup_folder=.*cannot be used \("):
            KeptPasses("a", tmp_path / "file" / "folder")


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
        """Whether the first pass was found."""
        kept = prepare(model, data=files, setup_folder=folder, **settings).rows.kept
        return kept._n_found == 1

    def test_the_same(self, data, files, tmp_path):
        assert not self.is_found(logistic(data), files, tmp_path / "kept")
        assert self.is_found(logistic(data), files, tmp_path / "kept")

    def test_other_rows_or_times(self, data, files, tmp_path):
        model, folder = logistic(data), tmp_path / "kept"
        self.is_found(model, files, folder)
        status = files["y"].stat()
        np.save(files["y"], ~data["y"])
        assert not self.is_found(model, files, folder)
        os.utime(files["y"], ns=(status.st_atime_ns, status.st_mtime_ns))
        assert not self.is_found(model, files, folder)  # values are looked at
        np.save(files["y"], data["y"])
        os.utime(files["y"], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert not self.is_found(model, files, folder)
        os.utime(files["y"], ns=(status.st_atime_ns, status.st_mtime_ns))
        assert self.is_found(model, files, folder)

    def test_another_model(self, data, files, tmp_path):
        def with_offset(offset, sd):
            with pm.Model() as model:
                slopes, effects = pm.Normal("slopes", 0, sd, shape=2), pm.Normal("effects", shape=3)
                x, level = pm.Data("x", data["x"][:9]), pm.Data("level", data["level"][:9])
                eta = effects[level] + x @ slopes + pm.math.exp(offset * x[:, 0])
                pm.Bernoulli("y", logit_p=eta, observed=data["y"][:9])
            return model

        folder = tmp_path / "kept"
        assert not self.is_found(with_offset(0.1, 1.0), files, folder)
        assert not self.is_found(with_offset(0.1 + 1e-16, 2.0), files, folder)
        assert not self.is_found(with_offset(0.1 + 2e-16, 1.0), files, folder)
        assert self.is_found(with_offset(0.1, 1.0), files, folder)

    def test_another_start_or_seed(self, data, files, tmp_path):
        model, folder = logistic(data), tmp_path / "kept"
        self.is_found(model, files, folder)
        start = model.initial_point() | {"slopes": np.array([0.1, 0.0])}
        assert not self.is_found(model, files, folder, initial_point=start)
        assert not self.is_found(model, files, folder, rng=8)

    def test_other_code_of_this_package(self, data, files, tmp_path, monkeypatch):
        folder = tmp_path / "kept"
        self.is_found(logistic(data), files, folder)
        monkeypatch.setattr(kept_for, "_digest_of_package", lambda: "later")
        assert not self.is_found(logistic(data), files, folder)

    def test_other_versions(self, data, files, tmp_path, monkeypatch):
        folder = tmp_path / "kept"
        self.is_found(logistic(data), files, folder)
        monkeypatch.setattr(kept_for, "version", lambda name: "99.0")
        assert not self.is_found(logistic(data), files, folder)

    def test_rows_that_nothing_tells_from_others(self, data, tmp_path):
        assert prepare(logistic(data), data=data).rows.kept is None
        with pytest.raises(
            SettingError, match=r"because another process cannot see .* data\['x'\] has changed"
        ):
            prepare(logistic(data), data=data, setup_folder=tmp_path)

    def test_a_source_of_the_users_own(self, data, tmp_path):
        sources = {name: Recorded(array) for name, array in data.items()}
        for name, source in sources.items():
            source.identity = f"{name}, version 3"
        assert not self.is_found(logistic(data), sources, tmp_path)
        assert self.is_found(logistic(data), sources, tmp_path)
        sources["x"].identity = "x, version 4"
        assert not self.is_found(logistic(data), sources, tmp_path)


class TestRefused:
    def test_no_path(self, tmp_path):
        with pytest.raises(SettingTypeError, match="setup_folder=3 is not a path: name a folder"):
            prepare(logistic(rows_of_regression(99)), data={"x": None}, setup_folder=3)

    def test_without_sources(self, tmp_path):
        with logistic(rows_of_regression(99)), pytest.raises(SettingError, match="without data="):
            AusterityMH(setup_folder=tmp_path)
