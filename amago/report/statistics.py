"""Scores of runs and their uncertainty over seeds [Agarwal et al. 2021, arXiv:2108.13264]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def final_window_mean(evaluations: Sequence[float]) -> float:
    """The mean of the last tenth of the evaluations, at least three where there are as many.

    Averaging the end instead of picking the best avoids its upward bias [Agarwal et al. 2021, §3].
    """
    values = _checked(evaluations)
    size = max(3, -(-len(values) // 10))
    return float(values[-size:].mean())


def maximum(evaluations: Sequence[float]) -> float:
    """The best evaluation: optimistic, to stand beside the others [Agarwal et al. 2021, §3]."""
    return float(_checked(evaluations).max())


def interquartile_mean(scores: Sequence[float]) -> float:
    """The mean without the lowest and highest quarter of the scores [Agarwal et al. 2021, §4.3].

    A quarter is rounded down, as in the authors' library: below four scores it is the mean.
    """
    return float(_interquartile_means(_checked(scores)[None])[0])


def bootstrap_interval(
    scores: Sequence[float], confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the interquartile mean over seeds [Agarwal et al. 2021, §4.1]."""
    return stratified_bootstrap_interval([scores], confidence, resamples, seed)


def stratified_bootstrap_interval(
    scores_per_task: Sequence[Sequence[float]],
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of the pooled interquartile mean, seeds drawn anew within each task.

    [Agarwal et al. 2021, §4.1]: tasks stay as they are, only their seeds are resampled.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}; 0.95 is usual")
    generator = np.random.default_rng(seed)
    drawn = []
    for scores in scores_per_task:
        values = _checked(scores)
        if len(values) < 2:
            raise ValueError("expected at least 2 seeds per task, got 1; run more seeds")
        drawn.append(values[generator.integers(len(values), size=(resamples, len(values)))])
    if not drawn:
        raise ValueError("expected the scores of at least one task, got none")
    means = _interquartile_means(np.concatenate(drawn, axis=1))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, (tail, 1.0 - tail))
    return float(low), float(high)


def _interquartile_means(samples: _Floats) -> _Floats:
    """Interquartile means [R] of the rows of samples [R, n]."""
    size = samples.shape[1]
    cut = size // 4
    means: _Floats = np.sort(samples, axis=1)[:, cut : size - cut].mean(axis=1)
    return means


def _checked(values: Sequence[float]) -> _Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"expected a list of at least one score, got shape {array.shape}")
    return array
