"""Four signals to be mixed: music, traffic and two of white noise, all synthesized.

The paper has recordings. What independent component analysis sees of a recording is the
distribution of its samples, heavier in the tails than a normal one, since sounds swell and fade;
and that neighbors resemble each other, of which the model knows nothing. Both signals have both.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]

SECONDS = 44.2  # 1.95 million samples at 44.1 kHz
NOTES_PER_SECOND, FADE = 4.0, 0.35
SCALE = 220.0 * 2.0 ** (np.array([0, 3, 5, 7, 10, 12, 15, 17]) / 12.0)  # A minor pentatonic, Hz
N_HARMONICS = 4
CARS_PER_SECOND, PASSING = 0.5, 0.3


def music(n: int, rng: np.random.Generator) -> Floats:
    """Plucked notes of a pentatonic scale, shape (n,), with unit variance.

    Each note is a sum of harmonics that fades exponentially. They come at random times, with
    log-normal loudness.

    Parameters
    ----------
    n : int
        Samples, whatever the sampling rate: they last 44.2 seconds.
    rng : numpy.random.Generator
        Source of the notes.
    """
    rate, n_notes = n / SECONDS, int(NOTES_PER_SECOND * SECONDS)
    begins = np.append(0, rng.integers(n, size=n_notes - 1))
    signal = np.zeros(n)
    for begin, pitch in zip(begins, rng.choice(SCALE, n_notes), strict=True):
        t = np.arange(min(n - begin, int(6.0 * FADE * rate))) / rate
        loudness = rng.lognormal(0.0, 0.7) * np.exp(-t / FADE)
        for k in range(1, N_HARMONICS + 1):
            phase = rng.uniform(0.0, 2.0 * np.pi)
            signal[begin : begin + t.size] += (
                loudness / k * np.sin(2 * np.pi * k * pitch * t + phase)
            )
    return _standardized(signal)


def traffic(n: int, rng: np.random.Generator) -> Floats:
    """Rumble that swells whenever a car passes, shape (n,), with unit variance.

    Normal noise, autoregressive of order one with coefficient 0.9, times the loudness: a floor,
    and 1 / (1 + (t / 0.3 s)^2) for a car that passes at time 0.

    Parameters
    ----------
    n : int
        Samples, whatever the sampling rate: they last 44.2 seconds.
    rng : numpy.random.Generator
        Source of the noise and of the cars.
    """
    t = np.linspace(0.0, SECONDS, n)
    loudness = np.full(n, 0.15)
    for passes in rng.uniform(0.0, SECONDS, size=int(CARS_PER_SECOND * SECONDS)):
        loudness += rng.lognormal(0.0, 0.5) / (1.0 + ((t - passes) / PASSING) ** 2)
    return _standardized(loudness * lfilter([1.0], [1.0, -0.9], rng.standard_normal(n)))


def four_signals(n: int, rng: np.random.Generator) -> Floats:
    """Music, traffic and two of normal white noise, shape (n, 4), each with unit variance."""
    return np.column_stack([music(n, rng), traffic(n, rng), rng.standard_normal((n, 2))])


def _standardized(signal: Floats) -> Floats:
    centered = signal - signal.mean()
    return centered / centered.std()
