"""Knockoffs: the construction against an SDP solver, exchangeability, the false discovery rate."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pytest

import zeronorm
from small_problems import noise
from zeronorm import FisherScore, KnockoffSelector, SelectionPath
from zeronorm.registry import register
from zeronorm.selection._problem import EmptySelectionWarning
from zeronorm.selectors._base import BaseSelector


def toeplitz(p, rho=0.5):
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def draw_gaussian(n, correlation, rng):
    return rng.standard_normal((n, len(correlation))) @ np.linalg.cholesky(correlation).T


@register("test-regression", family="filters", tasks=("regression",), reference="")
class LeastSquaresWeights(BaseSelector):
    """Absolute least-squares coefficients: a function of X'X and X'y."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def _select(self, problem):
        X = problem.design.block(slice(None))
        weights = np.linalg.lstsq(X, problem.y - problem.y.mean(), rcond=None)[0]
        return SelectionPath.from_scores(np.abs(weights))


def blocks(n, p, rng):
    return np.sqrt(0.5) * (
        np.repeat(rng.standard_normal((n, p // 10)), 10, axis=1) + rng.standard_normal((n, p))
    )


COLUMNS = {
    "chain": lambda n, p, rng: draw_gaussian(n, toeplitz(p, 0.6), rng),
    "blocks": blocks,
    "lognormal": lambda n, p, rng: np.exp(draw_gaussian(n, toeplitz(p, 0.6), rng)),
    "heavy tails": lambda n, p, rng: blocks(n, p, rng) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3),
}


def mean_false_share(columns, n, p, n_draws, level=0.2, n_relevant=12, **settings):
    """Mean share of false selections, its standard error, and the mean share of relevant features found."""
    shares, found = [], []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        X = COLUMNS[columns](n, p, rng)
        relevant = rng.choice(p, n_relevant, replace=False)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        signal = Z[:, relevant] @ rng.choice([-0.7, 0.7], n_relevant)
        y = (signal + rng.standard_normal(n) > 0).astype(int)
        chosen = (
            KnockoffSelector(FisherScore(), level=level, n_draws=1, random_state=seed, **settings)
            .fit(X, y)
            .get_support(True)
        )
        shares.append(np.mean(~np.isin(chosen, relevant)) if chosen.size else 0.0)
        found.append(np.isin(relevant, chosen).mean())
    return np.mean(shares), np.std(shares) / np.sqrt(n_draws), np.mean(found)


@pytest.mark.parametrize("columns", COLUMNS)
def test_correlated_columns_of_any_shape_keep_the_rate(columns):
    share, error, _ = mean_false_share(columns, 150, 50, 40)
    assert share <= 0.2 + 2 * error


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(200, 60), (100, 150)], ids=["tall", "wide"])
@pytest.mark.parametrize("columns", COLUMNS)
def test_correlated_columns_of_any_shape_keep_the_rate_on_500_draws(columns, shape):
    share, error, found = mean_false_share(columns, *shape, 500)
    print(f"{columns} {shape}: false discovery rate {share:.3f} ± {error:.3f}, power {found:.2f}")
    assert share <= 0.2 + 2 * error


# -- the selector ---------------------------------------------------------------------------------------


def make_regression(rng, n=200, p=30, k=12, amplitude=0.8, correlation=None):
    X = draw_gaussian(n, toeplitz(p, 0.4) if correlation is None else correlation, rng)
    truth = np.zeros(p, dtype=bool)
    truth[rng.choice(p, k, replace=False)] = True
    y = X[:, truth] @ (amplitude * rng.choice([-1, 1], k)) + rng.standard_normal(n)
    return X, y, truth


def false_discovery_rate(settings, n_draws, seed=0, **data):
    rng = np.random.default_rng(seed)
    shares, power = [], []
    for i in range(n_draws):
        X, y, truth = make_regression(rng, **data)
        fitted = KnockoffSelector(LeastSquaresWeights(), level=0.2, random_state=i, **settings).fit(X, y)
        shares.append(np.sum(fitted.support_ & ~truth) / max(1, fitted.n_features_))
        power.append(fitted.support_[truth].mean())
    return np.asarray(shares), float(np.mean(power))


SETTINGS = {
    "known correlation": {"correlation": toeplitz(30, 0.4), "n_draws": 1},
    "second order": {"n_draws": 1},
    "semidefinite": {"construction": "sdp", "correlation": toeplitz(30, 0.4), "n_draws": 1},
    "minimum variance": {"construction": "mvr", "correlation": toeplitz(30, 0.4), "n_draws": 1},
    "fixed X": {"knockoffs": "fixed_x", "n_draws": 1},
    "derandomised": {"n_draws": 5, "correlation": toeplitz(30, 0.4)},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_false_discovery_rate(setting):
    shares, power = false_discovery_rate(SETTINGS[setting], n_draws=40)
    assert shares.mean() <= 0.2 + 3 * shares.std() / np.sqrt(40)
    assert power > 0.3  # not by selecting nothing


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_false_discovery_rate_on_200_draws(setting):
    shares, power = false_discovery_rate(SETTINGS[setting], n_draws=200, seed=1)
    print(f"{setting}: false discovery rate {shares.mean():.3f} (level 0.2), power {power:.2f}")
    assert shares.mean() <= 0.2 + 2 * shares.std() / np.sqrt(200)


def test_marginal_scores_of_correlated_features_keep_the_rate():
    """Correlation misleads the Fisher score, but the knockoffs keep the rate (classification)."""
    rng = np.random.default_rng(5)
    correlation = toeplitz(20, 0.7)
    shares, plain = [], []
    for i in range(60):
        X = draw_gaussian(200, correlation, rng)
        y = (X[:, [2, 9, 15]].sum(axis=1) + rng.standard_normal(200) > 0).astype(int)
        fitted = KnockoffSelector(FisherScore(), level=0.3, correlation=correlation, random_state=i).fit(X, y)
        false = np.delete(fitted.support_, [2, 9, 15]).sum()
        shares.append(false / max(1, fitted.n_features_))
        plain.append(np.delete(FisherScore(6).fit(X, y).support_, [2, 9, 15]).sum() / 6)
    assert np.mean(shares) <= 0.3 + 3 * np.std(shares) / np.sqrt(60)
    assert np.mean(plain) > 0.4


def test_derandomised_selection_varies_less():
    rng = np.random.default_rng(6)
    X, y, _ = make_regression(rng, amplitude=0.4)

    def scale(n_draws):
        runs = [
            KnockoffSelector(LeastSquaresWeights(), level=0.3, n_draws=n_draws, random_state=i)
            .fit(X, y)
            .support_
            for i in range(15)
        ]
        frequency = np.mean(runs, axis=0)
        return np.mean(frequency * (1 - frequency))

    assert scale(30) < scale(1)


def test_selection_is_the_prefix_of_the_path():
    rng = np.random.default_rng(7)
    X, y, _ = make_regression(rng)
    one = KnockoffSelector(LeastSquaresWeights(), level=0.3, n_draws=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.support_, one.statistics_ >= one.threshold_)
    many = KnockoffSelector(LeastSquaresWeights(), level=0.3, n_draws=4, random_state=0).fit(X, y)
    passing = many.e_values_ >= 30 / (0.3 * max(1, many.n_features_)) - 1e-9
    np.testing.assert_array_equal(many.support_, passing)
    assert one.path_.n_features == 30


def test_constant_columns_are_never_selected():
    rng = np.random.default_rng(8)
    X, y, _ = make_regression(rng)
    X[:, 4], X[:, 11] = 3.0, 0.0
    fitted = KnockoffSelector(LeastSquaresWeights(), level=0.5, random_state=0).fit(X, y)
    assert set(fitted.path_.order[-2:]) == {4, 11}
    assert np.all(np.isfinite(fitted.scores_))


def test_processes_do_not_change_the_result():
    X, y, _ = make_regression(np.random.default_rng(9))
    one = KnockoffSelector(LeastSquaresWeights(), n_draws=3, random_state=0).fit(X, y)
    with joblib.parallel_config(backend="threading"):  # processes cannot import the classes of a test file
        two = KnockoffSelector(LeastSquaresWeights(), n_draws=3, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.statistics_, two.statistics_)


def test_wide_data():
    rng = np.random.default_rng(10)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 120))
    X[:, :4] += 2.5 * y[:, None]
    fitted = KnockoffSelector(FisherScore(), level=0.5, random_state=0).fit(X, y)
    assert fitted.support_[:4].sum() >= 3


BAD_INPUT = {
    "level": ({"level": 1.0}, "greater than 0 and less than 1"),
    "kind": ({"knockoffs": "deep"}, "'knockoffs' parameter"),
    "construction": ({"construction": "asdp"}, "'construction' parameter"),
    "offset": ({"offset": 2}, "'offset' parameter"),
    "draws": ({"n_draws": 0}, "'n_draws' parameter"),
    "few samples": ({"knockoffs": "fixed_x"}, "Got 30 samples and 20 features"),
    "correlation": ({"correlation": np.eye(3)}, "Got shape .3, 3."),
    "singular": ({"correlation": np.ones((20, 20))}, "linear combinations"),
    "groups": ({"selector": FisherScore(feature_groups=np.arange(20))}, "cannot have 'feature_groups'"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 20)), np.arange(30) % 2
    given, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        KnockoffSelector(**({"selector": FisherScore()} | given)).fit(X, y)


def test_constant_columns_alone_are_refused():
    with pytest.raises(ValueError, match="constant columns only"):
        KnockoffSelector(FisherScore()).fit(np.ones((6, 3)), np.arange(6) % 2)


def test_features_pass_the_filter_at_the_threshold():
    varying = np.array([0, 2, 3, 4, 5])
    draws = np.array([[5.0, 4.0, 3.0, -2.5, 2.0], [5.0, 4.0, 3.0, -1.0, 2.0]])
    one = zeronorm.KnockoffSelector(FisherScore(), level=0.34, n_draws=1)
    key, n_passing = one._filter(draws[:1], varying, 6)
    assert (key.tolist(), n_passing, one.threshold_) == ([0.0] * 6, 3, 3.0)
    none = zeronorm.KnockoffSelector(FisherScore(), level=0.1, n_draws=1)
    assert none._filter(draws[:1], varying, 6)[1] == 0
    several = zeronorm.KnockoffSelector(FisherScore(), level=0.68, n_draws=2)
    key, n_passing = several._filter(draws, varying, 6)
    # At half the level: thresholds 3 and 2, each with no statistic below its negative.
    np.testing.assert_allclose(key, [5.0, 0.0, 5.0, 5.0, 0.0, 2.5])
    np.testing.assert_array_equal(several.e_values_, key)
    assert n_passing == 4


def test_fixed_knockoffs_need_more_than_twice_the_samples():
    selector = zeronorm.KnockoffSelector(FisherScore(), knockoffs="fixed_x", level=0.5, random_state=0)
    with pytest.raises(ValueError, match="Got 12 samples and 6 features that vary"):
        selector.fit(noise(12, 6), np.arange(12) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(noise(13, 6), np.arange(13) % 2)
    assert selector.statistics_.shape == (6,)
    wrong = zeronorm.KnockoffSelector(FisherScore(), correlation=np.eye(5))
    with pytest.raises(ValueError, match=r"shape \(6, 6\)"):
        wrong.fit(noise(40, 6), np.arange(40) % 2)
    wrong.set_params(n_features_to_select=1).fit(noise(40, 5), np.arange(40) % 2)


# -- masked likelihood ratios, the statistic without a selector -----------------------------------------


def test_the_default_finds_features_of_classes_and_real_targets():
    rng = np.random.default_rng(0)
    X, y, truth = make_regression(rng, n=300, p=40)
    for target, settings in ((y > 0, {}), (y, {"task": "regression"})):
        found = KnockoffSelector(random_state=0, **settings).fit(X, target)
        assert found.support_[truth].mean() > 0.9
        assert found.support_[~truth].sum() <= 2


def test_the_default_keeps_the_rate_and_finds_more_than_the_fisher_score():
    shares, found, by_fisher = [], [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = blocks(200, 60, rng)
        truth = np.zeros(60, dtype=bool)
        truth[rng.choice(60, 12, replace=False)] = True
        y = X[:, truth] @ rng.choice([-0.7, 0.7], 12) + rng.standard_normal(200) > 0
        own = KnockoffSelector(level=0.2, random_state=seed).fit(X, y)
        shares.append(np.sum(own.support_ & ~truth) / max(1, own.n_features_))
        found.append(own.support_[truth].mean())
        fisher = KnockoffSelector(FisherScore(), level=0.2, random_state=seed).fit(X, y)
        by_fisher.append(fisher.support_[truth].mean())
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / 5
    assert np.mean(found) > 0.5
    assert np.mean(found) > np.mean(by_fisher) + 0.2


def test_the_order_of_the_samples_does_not_matter():
    X, y, _ = make_regression(np.random.default_rng(1))
    rows = np.random.default_rng(2).permutation(len(y))
    one = KnockoffSelector(task="regression", random_state=0).fit(X, y)
    other = KnockoffSelector(task="regression", random_state=0).fit(X[rows], y[rows])
    np.testing.assert_array_equal(one.scores_, other.scores_)


def test_several_draws_agree_from_seed_to_seed():
    """Jaccard similarity of selections with different seeds, on the same data."""
    X, y, _ = make_regression(np.random.default_rng(3), n=250, p=60, k=15, amplitude=0.4)

    def similarity(n_draws):
        sets = [
            KnockoffSelector(task="regression", level=0.2, n_draws=n_draws, random_state=seed)
            .fit(X, y)
            .support_
            for seed in range(8)
        ]
        pairs = [(a, b) for i, a in enumerate(sets) for b in sets[:i]]
        return np.mean([np.sum(a & b) / max(1, np.sum(a | b)) for a, b in pairs])

    assert similarity(10) > max(0.85, similarity(1))


def test_fixed_knockoffs_need_a_selector_and_the_task_must_agree():
    X, y = noise(40, 6), np.arange(40) % 2
    with pytest.raises(ValueError, match=r"'selector' parameter.*knockoffs='fixed_x'"):
        KnockoffSelector(knockoffs="fixed_x").fit(X, y)
    with pytest.raises(ValueError, match=r"'task' parameter.*'classification'"):
        KnockoffSelector(FisherScore(), task="regression").fit(X, y)


# -- no power, before the work begins -------------------------------------------------------------------


def test_a_warning_comes_before_the_work_if_nothing_can_pass(monkeypatch):
    def never(*_):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(KnockoffSelector, "_plan", never)
    for shape, reason in (
        ((50, 8), "have 8 features that vary"),
        ((62, 2000), "takes about 106 independent samples"),
    ):
        y = np.arange(shape[0]) % 2
        with pytest.raises(EmptySelectionWarning, match=f"at least 10 features or none.*{reason}"):
            KnockoffSelector(random_state=0).fit(noise(*shape), y)
    for settings in ({"n_features_to_select": 3}, {"level": 0.9}):
        with pytest.raises(AssertionError, match="begun"):
            KnockoffSelector(random_state=0, **settings).fit(noise(50, 8), np.arange(50) % 2)


# -- groups of samples ----------------------------------------------------------------------------------


def repeated_patients(seed, n_patients=16, n_each=4, p=30):
    """Samples of one patient share most of their values, and the label of the patient; no feature is relevant."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_patients), n_each)
    X = rng.normal(size=(n_patients, p))[groups] + 0.3 * rng.normal(size=(groups.size, p))
    return X, rng.permutation(np.arange(n_patients) % 2)[groups], groups


@pytest.mark.parametrize("selector", [None, FisherScore()], ids=["own", "fisher"])
def test_null_features_of_repeated_patients_keep_the_level(selector):
    """Without a relevant feature the rate is the probability of any selection."""
    kept = {True: [], False: []}
    for seed in range(40):
        X, y, groups = repeated_patients(seed)
        for grouped in kept:
            found = KnockoffSelector(selector, level=0.35, random_state=seed)
            found.fit(X, y, groups=groups if grouped else None)
            kept[grouped].append(found.n_features_ > 0)
    assert np.mean(kept[True]) <= 0.35 + 2 * np.sqrt(0.23 / 40)
    assert np.mean(kept[True]) < np.mean(kept[False])


def test_groups_are_their_means():
    X, y, groups = repeated_patients(0, n_patients=40)
    means = np.stack([X[groups == g].mean(axis=0) for g in range(40)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptySelectionWarning)
        grouped = KnockoffSelector(random_state=0).fit(X, y, groups=groups)
        alone = KnockoffSelector(random_state=0).fit(means, y[::4])
    np.testing.assert_allclose(grouped.scores_, alone.scores_, atol=1e-6)


def test_groups_of_several_classes():
    X, y, groups = repeated_patients(0, n_patients=40)
    y[0] = 1 - y[0]
    selector = KnockoffSelector(level=0.4, random_state=0)
    assert np.all(np.isfinite(selector.fit(X, y, groups=groups).scores_))  # by the shares of the classes
    with pytest.raises(ValueError, match="samples of several classes, which FisherScore cannot use"):
        selector.set_params(selector=FisherScore()).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="same mean in all 40 groups"):
        selector.fit(X, np.tile([0, 1, 0, 1], 40), groups=groups)


def test_samples_of_one_patient_with_different_targets_all_count():
    """Their means alone are too few; the rate of a random effect of each patient is within the level."""
    false, found = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, _, groups = repeated_patients(seed, n_patients=40, p=40)
        y = X[:, :10].sum(axis=1) + rng.normal(size=40)[groups] + 0.3 * rng.normal(size=160)
        chosen = KnockoffSelector(level=0.2, task="regression", random_state=seed).fit(X, y, groups=groups)
        false.append(chosen.support_[10:].sum() / max(chosen.n_features_, 1))
        found.append(chosen.support_[:10].mean())
    assert np.mean(found) > 0.7
    assert np.mean(false) <= 0.2 + 2 * np.std(false) / np.sqrt(15)
    paired = np.tile([0, 1, 0, 1], 40)
    assert np.all(
        np.isfinite(KnockoffSelector(level=0.2, random_state=0).fit(X, paired, groups=groups).scores_)
    )


# -- many features --------------------------------------------------------------------------------------


def test_more_features_than_one_block():
    rng = np.random.default_rng(0)
    X, y, truth = make_regression(rng, n=250, p=1200, k=15, amplitude=1.0)
    found = KnockoffSelector(task="regression", level=0.2, n_draws=2, random_state=0).fit(X, y)
    assert found.support_[truth].mean() > 0.8
    assert np.sum(found.support_ & ~truth) <= 0.4 * found.n_features_
