from __future__ import annotations

import numpy as np
import pytest

from amago.report.statistics import (
    bootstrap_interval,
    final_window_mean,
    interquartile_mean,
    maximum,
    stratified_bootstrap_interval,
)


def test_the_final_window_is_three_evaluations_when_a_tenth_is_less() -> None:
    assert final_window_mean([100.0, 1.0, 2.0, 6.0]) == 3.0


def test_the_final_window_is_a_tenth_of_many_evaluations_rounded_up() -> None:
    assert final_window_mean([0.0] * 36 + [1.0, 2.0, 3.0, 4.0]) == 2.5
    assert final_window_mean([0.0] * 37 + [1.0, 2.0, 3.0, 4.0]) == 2.0


def test_the_final_window_of_a_single_evaluation_is_that_evaluation() -> None:
    assert final_window_mean([0.25]) == 0.25


def test_the_maximum_is_the_best_evaluation_wherever_it_is() -> None:
    assert maximum([-3.0, -1.0, -2.0]) == -1.0


def test_the_interquartile_mean_drops_a_quarter_on_each_side() -> None:
    assert interquartile_mean([100.0, 1.0, 3.0, -50.0]) == 2.0
    assert interquartile_mean([9.0, 0.0, 1.0, 2.0, 6.0]) == 3.0
    assert interquartile_mean([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 90.0, 90.0]) == 2.5


def test_the_interquartile_mean_of_three_scores_is_their_mean() -> None:
    assert interquartile_mean([0.0, 3.0, 9.0]) == 4.0


def test_the_interval_of_two_scores_reaches_from_one_to_the_other() -> None:
    # Both draws fall on the same score in half of all resamples, a quarter for each.
    assert bootstrap_interval([1.0, 2.0]) == (1.0, 2.0)
    # At 40% the tails are 30%, more than those quarters: the mean of both is all that stays.
    assert bootstrap_interval([1.0, 2.0], confidence=0.4) == (1.5, 1.5)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    scores = np.random.default_rng(0).normal(size=9).tolist()
    assert bootstrap_interval(scores) == bootstrap_interval(scores)
    assert bootstrap_interval(scores, seed=1) != bootstrap_interval(scores)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(150):
        low, high = bootstrap_interval(generator.normal(7.0, 1.0, size=20).tolist())
        hits += low <= 7.0 <= high
    assert 0.86 <= hits / 150 <= 0.99


def test_seeds_are_resampled_within_their_task_only() -> None:
    # Four of eight pooled scores are 0 and four are 10 in every stratified resample.
    low, high = stratified_bootstrap_interval([[0.0] * 4, [10.0] * 4])
    assert (low, high) == (5.0, 5.0)
    mixed_low, mixed_high = bootstrap_interval([0.0] * 4 + [10.0] * 4)
    assert mixed_low < 3.0 and mixed_high > 7.0


@pytest.mark.parametrize("function", [final_window_mean, maximum, interquartile_mean])
def test_no_scores_are_an_error(function: object) -> None:
    with pytest.raises(ValueError, match="at least one score"):
        function([])  # type: ignore[operator]


def test_one_seed_has_no_interval() -> None:
    with pytest.raises(ValueError, match="run more seeds"):
        bootstrap_interval([1.0])
