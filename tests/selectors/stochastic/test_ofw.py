"""OptimalFeatureWeighting as a whole: selected features, checkpoints, reproducibility, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from oracles.subsets import gaussian_classes
from zeronorm import OptimalFeatureWeighting
from zeronorm.datasets._generators import make_reusable_features
from zeronorm.engines.weighting import _batches as source
from zeronorm.engines.weighting._batches import uneven_parts
from zeronorm.engines.weighting._steps import WeightingRun
from zeronorm.engines.weighting.learners._nearest import SubsetCentroid, SubsetKNN


def selector(**settings):
    quick = {
        "learner": "centroid",
        "subset_size": 2,
        "max_iter": 300,
        "batch_size": 1,
        "random_state": 0,
    }
    return OptimalFeatureWeighting(**(quick | settings))


def iris_mass(seed, **settings):
    """Weight on petal length and width after learning with trees on two features."""
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(150)[:100]
    s = OptimalFeatureWeighting(learner="cart", subset_size=2, random_state=seed, **settings)
    return float(s.fit(X[rows], y[rows]).weights_[2:].sum())


# Short runs do not converge; their warnings are tested below.
pytestmark = pytest.mark.filterwarnings("ignore:.*still moved:sklearn.exceptions.ConvergenceWarning")

# -- selected features --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", ["exponential", "diffusion"])
def test_iris_petals_hold_the_mass(method, seed):
    assert iris_mass(seed, method=method) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exponential", "diffusion"])
def test_iris_petals_hold_the_mass_over_ten_seeds(method):
    masses = [iris_mass(seed, method=method) for seed in range(10)]
    print(f"IRIS, {method}: mass of the petals {np.round(masses, 3)}")
    assert min(masses) >= 0.9


def synthetic_order(seed, **settings):
    data = make_reusable_features(500, random_state=seed)
    s = OptimalFeatureWeighting(
        learner=SubsetKNN(5, metric="hamming"),
        subset_size=4,
        bootstrap_size=100,
        random_state=seed,
        **settings,
    ).fit(data.X, data.y)
    return s.path_.order


@pytest.mark.parametrize("method", ["diffusion", "exponential"])
def test_relevant_features_lead_on_the_synthetic_problem(method):
    # A run of a tenth of the default length: most of the nine come before the 91 of noise.
    first = synthetic_order(0, max_iter=400, method=method)[:9]
    assert np.count_nonzero(first < 9) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["diffusion", "exponential"])
def test_all_nine_relevant_features_precede_noise_on_the_synthetic_problem(method):
    orders = []
    for seed in range(10):
        orders.append(synthetic_order(seed, method=method))
        print(f"seed {seed}: order {(orders[-1][:12] + 1).tolist()}")
    complete = sum(set(order[:9].tolist()) == set(range(9)) for order in orders)
    positions = [[int(np.flatnonzero(order == f)[0]) + 1 for f in (0, 3, 7)] for order in orders]
    print(f"all nine first in {complete} of 10 seeds; positions of features 1, 4 and 8: {positions}")
    assert complete >= 9


@pytest.mark.parametrize("method", ["exponential", "euclidean", "diffusion", "exact", "exact_euclidean"])
def test_every_method_lowers_the_energy(method):
    X, y = gaussian_classes(n=80, p=8, shift=1.5)
    s = selector(method=method, subset_size=1, batch_size=8, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the Euclidean scheme ends at the boundary
        s.fit(X, y)
    uniform = np.full(8, 1 / 8)
    before = s.mean_error(X, y, weights=uniform, n_subsets=5000, random_state=1)
    assert s.mean_error(X, y, n_subsets=5000, random_state=2) < before - 0.02
    assert set(s.path_.order[:2].tolist()) == {0, 1}


def test_mean_error_on_a_test_set_of_its_own():
    X, y = gaussian_classes(n=200, p=4, shift=2.0)
    s = selector(max_iter=50).fit(X[:100], y[:100])
    fresh = s.mean_error(X[:100], y[:100], X[100:], y[100:], n_subsets=4000, random_state=1)
    assert 0.05 < fresh < 0.45
    # Swapping the labels of the test set turns the error e into 1 - e.
    turned = s.mean_error(X[:100], y[:100], X[100:], 1 - y[100:], n_subsets=4000, random_state=1)
    assert turned == pytest.approx(1.0 - fresh)
    with pytest.raises(ValueError, match="y_test holds classes that y does not: 2"):
        s.mean_error(X, y, X, y + 1)
    with pytest.raises(ValueError, match="The weights are for 4 features"):
        s.mean_error(X[:, :3], y)


def test_exact_trajectory_descends():
    X, y = gaussian_classes(n=60, p=6)
    s = selector(method="exact", max_iter=60).fit(X, y)
    assert np.all(np.diff(s.history_.mean_error) < 0)
    assert s.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("multi_class", ["auto", "native", "one_vs_rest", "output_code"])
def test_three_classes(multi_class):
    X, y = gaussian_classes(n=90, p=8, n_classes=3, shift=2.0)
    s = selector(multi_class=multi_class, batch_size=8, max_iter=500, subset_size=1).fit(X, y)
    assert set(s.path_.order[:2].tolist()) == {0, 1}


def test_any_classifier_of_scikit_learn():
    X, y = gaussian_classes(n=60, p=5, shift=3.0)
    s = selector(
        learner=DecisionTreeClassifier(max_depth=2), max_iter=60, batch_size=4, n_features_to_select=2
    )
    assert s.fit(X, y).support_[:2].all()
    again = clone(s).fit(X, y)  # the random_state of the selector fixes that of the tree
    assert np.array_equal(again.weights_, s.weights_)


def test_balanced_cost_and_class_weights_change_what_is_learned():
    X, y = gaussian_classes(n=90, p=6)
    y[:30] = 0
    plain, balanced = selector().fit(X, y), selector(cost="balanced").fit(X, y)
    weighted = selector(class_weight={0: 1.0, 1: 4.0}).fit(X, y)
    assert not np.array_equal(plain.weights_, balanced.weights_)
    assert not np.array_equal(plain.weights_, weighted.weights_)
    same = selector(class_weight={0: 2.0, 1: 2.0}).fit(X, y)
    np.testing.assert_allclose(same.weights_, plain.weights_)


def test_fisher_preselection_restricts_the_distribution():
    X, y = gaussian_classes(n=80, p=20, shift=2.0)
    s = selector(fisher_threshold=0.1).fit(X, y)
    assert 2 <= np.count_nonzero(s.weights_) < 20
    kept = np.flatnonzero(s.weights_)
    assert set(s.path_.order[: kept.size].tolist()) == set(kept.tolist())
    assert s.history_.weights.shape[1] == 20


def test_trajectory_is_kept_thinned():
    X, y = gaussian_classes()
    s = selector(max_iter=1000, tol=1e-12).fit(X, y)
    history = s.history_
    assert history.steps[-1] == 1000
    assert len(history.steps) == len(history.mean_error) == len(history.weights) <= 40
    np.testing.assert_allclose(history.weights.sum(axis=1), 1.0)
    assert np.array_equal(history.weights[-1], s.weights_)
    assert np.all((history.mean_error >= 0) & (history.mean_error <= 1))


# -- the same seed, the same weights --------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["linear_svm", "centroid"])
def test_weights_do_not_depend_on_the_number_of_workers(learner):
    X, y = gaussian_classes(n=60, p=30)
    runs = [
        selector(learner=learner, batch_size=7, subset_size=5, max_iter=100, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2, 3)
    ]
    assert np.array_equal(runs[0].weights_, runs[1].weights_)
    assert np.array_equal(runs[0].weights_, runs[2].weights_)
    assert runs[0].n_redrawn_ == runs[1].n_redrawn_


@pytest.mark.parametrize(("size", "n_workers"), [(1, 2), (7, 2), (64, 2), (100, 8)])
def test_parts_cover_a_batch_once(size, n_workers):
    parts = uneven_parts(size, n_workers)
    assert [i for first, last in parts for i in range(first, last)] == list(range(size))


def test_an_error_in_a_worker_is_raised():
    class Broken(SubsetCentroid):
        def errors(self, pool, draws, first, last, out):
            if last == 64:  # the last part, whoever takes it
                raise RuntimeError("broken learner")
            super().errors(pool, draws, first, last, out)

    X, y = gaussian_classes()
    with pytest.raises(RuntimeError, match="broken learner"):
        selector(learner=Broken(), batch_size=64, n_jobs=2).fit(X, y)


def test_scikit_learn_classifiers_do_not_depend_on_the_number_of_workers():
    X, y = gaussian_classes(n=40, p=5)
    tree = DecisionTreeClassifier(max_features=1)
    with parallel_config("threading"):
        runs = [selector(learner=tree, batch_size=3, max_iter=5, n_jobs=j).fit(X, y) for j in (1, 2)]
    assert np.array_equal(runs[0].weights_, runs[1].weights_)


def test_data_too_large_to_copy_gives_the_same_weights(monkeypatch):
    X, y = gaussian_classes(n=60, p=30)
    held = selector(batch_size=3, subset_size=5, max_iter=50).fit(X, y)
    monkeypatch.setattr(source.Source.__init__, "__kwdefaults__", {"largest_copy_bytes": 0})
    read = selector(batch_size=3, subset_size=5, max_iter=50).fit(X, y)
    assert np.array_equal(read.weights_, held.weights_)


# -- checkpoints ----------------------------------------------------------------------------------------


class Killed(RuntimeError):
    """Simulates the end of the process."""


@pytest.mark.parametrize("method", ["exponential", "diffusion"])
@pytest.mark.parametrize("random_state", [0, None])
def test_a_killed_run_resumes_with_identical_results(tmp_path, monkeypatch, method, random_state):
    X, y = gaussian_classes(n=60, p=10)
    file = tmp_path / "run.npz"
    settings = {"method": method, "max_iter": 200, "tol": 1e-9, "window": 2, "random_state": random_state}
    interrupted = selector(checkpoint=file, checkpoint_every=30, **settings)
    step = WeightingRun._step

    def killed_at_100(run):
        if run.state.step == 100:
            raise Killed
        return step(run)

    with monkeypatch.context() as patch:
        patch.setattr(WeightingRun, "_step", killed_at_100)
        with pytest.raises(Killed):
            interrupted.fit(X, y)
    with np.load(file) as saved:
        seed = int(saved["seed"])
        assert saved["counters"][0] == 90
    if random_state is None:
        monkeypatch.setattr(WeightingRun, "_step", lambda run: check_seed(run, seed) and step(run))
    with pytest.warns(ConvergenceWarning, match="still moved"):
        resumed = clone(interrupted).fit(X, y)
    assert not file.exists()
    assert resumed.n_iter_ == 200
    if random_state is not None:
        with pytest.warns(ConvergenceWarning, match="still moved"):
            whole = selector(**settings).fit(X, y)
        assert np.array_equal(resumed.weights_, whole.weights_)
        assert np.array_equal(resumed.history_.weights, whole.history_.weights)
        assert np.array_equal(resumed.history_.mean_error, whole.history_.mean_error)
        assert resumed.n_redrawn_ == whole.n_redrawn_


def check_seed(run, seed):
    assert run.state.seed == seed
    return True


def test_a_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch):
    X, y = gaussian_classes(n=60, p=10)
    file = tmp_path / "run.npz"
    s = selector(checkpoint=file, checkpoint_every=10, max_iter=30)
    with monkeypatch.context() as patch:
        patch.setattr("zeronorm.engines.weighting._state.Checkpoint.remove", lambda self: None)
        s.fit(X, y)
    with pytest.raises(ValueError, match=r"another run \(.*subset_size: 2 saved, 3 now\)"):
        clone(s).set_params(subset_size=3).fit(X, y)
    with pytest.raises(ValueError, match=r"another run \(data: "):
        clone(s).fit(X + np.arange(60)[:, None] ** 2, y)
    with pytest.raises(ValueError, match=r"another run \(seed: "):
        clone(s).set_params(random_state=1).fit(X, y)
    file.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="cannot be read"):
        clone(s).fit(X, y)


# -- stopping -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [None, 0.25])
def test_a_short_run_does_not_claim_convergence(tol):
    X, y = gaussian_classes()
    with pytest.warns(ConvergenceWarning, match="still moved after 50 steps"):
        assert not selector(max_iter=50, tol=tol).fit(X, y).converged_


def test_settled_weights_stop_the_run():
    X, y = gaussian_classes()
    s = selector(max_iter=20_000).fit(X, y)
    assert s.converged_
    assert s.n_iter_ < 20_000
    assert "settled" in s.stop_reason_


def test_unsettled_weights_are_reported():
    X, y = gaussian_classes()
    with pytest.warns(ConvergenceWarning, match="still moved after 200 steps; raise max_iter or tol"):
        s = selector(max_iter=200, tol=1e-9).fit(X, y)
    assert not s.converged_


def test_euclidean_failure_stops_with_the_reason_and_the_last_valid_weights():
    X, y = gaussian_classes()
    with pytest.warns(ConvergenceWarning, match="a weight would become non-positive"):
        s = selector(method="euclidean", step_size=1000.0, step_offset=1e4, max_iter=1000).fit(X, y)
    assert not s.converged_
    assert s.n_iter_ < 1000
    assert s.weights_.min() > 0.0
    assert s.weights_.sum() == pytest.approx(1.0)


# -- selected size ---------------------------------------------------------------------------------------


def test_selected_size_counts_the_features_above_the_uniform_weight():
    X, y = gaussian_classes(n=80, p=8, shift=1.5)
    s = selector(batch_size=8).fit(X, y)
    assert 0 < s.support_.sum() < 8
    assert np.array_equal(s.support_, s.weights_ > 1 / 8)


def test_selected_size_is_relative_to_the_features_under_study():
    X, y = gaussian_classes(n=80, p=20, shift=0.5)
    s = selector(fisher_threshold=0.02, batch_size=8, max_iter=30).fit(X, y)
    n_active = np.count_nonzero(s.weights_)
    assert 2 < n_active < 20
    assert np.array_equal(s.support_, s.weights_ > 1 / n_active)
    assert s.support_.sum() < np.count_nonzero(s.weights_ > 1 / 20)


def test_features_without_weight_are_ranked_by_their_mean_weights_during_the_run():
    X, y = gaussian_classes(n=80, p=30, shift=1.5)
    s = selector(subset_size=5, batch_size=8, max_iter=2000, tol=1e-12).fit(X, y)
    small = np.flatnonzero(s.weights_ < 1 / 30)
    assert small.size > 2
    mean = s.history_.weights[:, small].mean(axis=0)
    assert np.array_equal(small[np.argsort(-mean, kind="stable")], s.path_.order[-small.size :])
    assert np.all(np.diff(s.scores_[s.path_.order]) <= 0)


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"subset_size": 7},
            "'subset_size' parameter .* at most the number of features under study, 6. Got 7",
        ),
        ({"subset_size": 0}, "'subset_size'"),
        ({"bootstrap_size": 1}, "'bootstrap_size' parameter .* at least 2. Got 1"),
        ({"learner": "svc"}, "'learner' parameter .* 'linear_svm'"),
        ({"method": "newton"}, "'method' parameter .* must be 'exponential'"),
        ({"cost": "auc"}, "'cost' parameter"),
        ({"batch_size": 0}, "'batch_size'"),
        ({"max_iter": 0.5}, "'max_iter'"),
        ({"window": 1}, "'window'"),
        ({"step_size": -1.0}, "'step_size' parameter .* None or a finite number greater than 0. Got -1.0"),
        ({"step_offset": 0}, "'step_offset'"),
        ({"step_offset": 10.0}, "'step_offset' parameter .* must be None when 'step_size' is None"),
        ({"tol": 0.0}, "'tol'"),
        ({"noise": 0.2}, "'noise' parameter .* at most 0.1"),
        ({"multi_class": "ovo"}, "'multi_class'"),
        ({"class_weight": {5: 1.0}}, "'class_weight'"),
        ({"class_weight": {0: -1.0}}, "'class_weight'"),
        ({"class_weight": 3}, "'class_weight'"),
        ({"class_weight": "balanced", "cost": "balanced"}, "must be None with cost='balanced'"),
        ({"fisher_threshold": 1e6}, "less than the largest Fisher score"),
        (
            {"method": "exact", "checkpoint": "x"},
            "'checkpoint' parameter of OptimalFeatureWeighting must be None",
        ),
        ({"learner": SubsetKNN(40)}, "40 neighbours cannot be found in training samples of 30"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    X, y = gaussian_classes()
    with pytest.raises(ValueError, match=message):
        selector(**settings).fit(X, y)


def test_two_class_learners_need_one_against_all():
    X, y = gaussian_classes(n_classes=3)
    with pytest.raises(ValueError, match="set multi_class='one_vs_rest'"):
        selector(learner="linear_svm", multi_class="native").fit(X, y)


@pytest.mark.parametrize("learner", ["linear_svm", LogisticRegression()])
def test_one_class_bootstraps_are_resampled_and_counted(learner):
    X, y = gaussian_classes(n=30)
    y[:] = np.arange(30) >= 27
    s = selector(learner=learner, bootstrap_size=4, max_iter=20).fit(X, y)
    assert s.n_redrawn_ > 0
    assert selector(bootstrap_size=4, max_iter=20).fit(X, y).n_redrawn_ == 0


def test_a_class_too_rare_for_the_bootstrap_is_an_error():
    X, y = gaussian_classes(n=5000)
    y[:] = 0
    y[7] = 1
    with pytest.raises(ValueError, match=r"two classes was found in 1000 draws.*Raise 'bootstrap_size'"):
        selector(learner="linear_svm", bootstrap_size=2, max_iter=50).fit(X, y)
