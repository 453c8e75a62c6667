"""Faults that tests once let pass. ``make mutation`` puts each one in and expects a test to fail.

A fault is a piece of text that occurs once in a file of ``src/zeronorm``, what replaces it, and the tests of that
part. Where the text has changed, the fault is reported as lost: state it anew for the code as it is now.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    meaning: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]


NAMED_FAULTS = (
    Fault(
        "sample groups are dropped from the outer folds",
        "workflow/_training.py",
        "        table.y,\n        table.sample_groups,\n",
        "        table.y,\n        None,\n",
        ("tests/workflow/test_run.py",),
    ),
    Fault(
        "sample groups are dropped from the final fit",
        "workflow/_training.py",
        "fitted.fit(table.with_covariates, table.y, groups=table.sample_groups)",
        "fitted.fit(table.with_covariates, table.y)",
        ("tests/workflow/test_run.py",),
    ),
    Fault(
        "sample groups are dropped from the evaluation",
        "workflow/_training.py",
        "        groups=table.sample_groups,\n",
        "        groups=None,\n",
        ("tests/workflow/test_run.py",),
    ),
    Fault(
        "rows of all sample groups reach the inner folds",
        "resampling/_folds.py",
        "plan.groups[split.train]",
        "plan.groups[: len(split.train)]",
        ("tests/evaluation/test_protocol.py", "tests/evaluation/test_leakage.py"),
    ),
    Fault(
        "AUC from the probability of the other class",
        "resampling/_folds.py",
        "return probability[:, 1] if",
        "return probability[:, 0] if",
        ("tests/evaluation/test_protocol.py", "tests/evaluation/test_metrics.py"),
    ),
    Fault(
        "the rules of the size take the best",
        "resampling/_size_rules.py",
        "tolerances = unit * np.linspace(least, most, N_TOLERANCES)",
        "tolerances = np.zeros(N_TOLERANCES)",
        ("tests/resampling/test_size_rules.py",),
    ),
    Fault(
        "seeds of SelectorCV do not follow random_state",
        "selectors/meta/_selector_cv.py",
        "seed = int(problem.rng.integers(2**31))",
        "seed = 0",
        ("tests/selectors/meta/test_selector_cv.py",),
    ),
    Fault(
        "folds that failed are not reported by select",
        "workflow/_measured.py",
        'if found["failed"]:',
        "if False:",
        ("tests/workflow",),
    ),
    Fault(
        "folds that failed are not reported by compare",
        "workflow/_comparison.py",
        "*failures(rows), ",
        "",
        ("tests/workflow",),
    ),
    Fault(
        "warnings of the methods are not collected by select",
        "workflow/_selection.py",
        "result = _selection_result(job, fitted, records, found, sizes, messages_of(caught))",
        "result = _selection_result(job, fitted, records, found, sizes, [])",
        ("tests/workflow", "tests/cli"),
    ),
    Fault(
        "warnings of the methods are not collected by compare",
        "workflow/_comparison.py",
        ", *messages_of(caught)]),",
        "]),",
        ("tests/workflow", "tests/cli"),
    ),
    Fault(
        "the seed is left out of the journal's fingerprint",
        "evaluation/_protocol.py",
        "        plan.seed,\n        data_digest",
        "        data_digest",
        ("tests/evaluation/test_journal.py", "tests/evaluation/test_protocol.py"),
    ),
    Fault(
        "the data are left out of the journal's fingerprint",
        "evaluation/_protocol.py",
        "        data_digest(plan.X, plan.y),\n",
        "",
        ("tests/evaluation/test_journal.py", "tests/evaluation/test_protocol.py"),
    ),
    Fault(
        "numbers that are not finite reach the JSON",
        "result/_plain.py",
        "if isinstance(value, float) and not math.isfinite(value):",
        "if False:",
        ("tests/workflow/test_result.py",),
    ),
    Fault(
        "centring is left out at prediction",
        "models/_kernel_arom.py",
        "return np.asarray((X - self.mean_) / self.scale_)",
        "return np.asarray(X / self.scale_)",
        ("tests/models/test_kernel_arom.py",),
    ),
    Fault(
        "probabilities of the relevance vector classifier are swapped",
        "models/_relevance_vector.py",
        "np.hstack([expit(-outputs), expit(outputs)])",
        "np.hstack([expit(outputs), expit(-outputs)])",
        ("tests/models",),
    ),
    Fault(
        "the Gram matrix is never refreshed",
        "engines/elimination/_loop.py",
        "if 2 * active.size <= self.n_at_start:\n            return True\n        self.gone +=",
        "if 2 * active.size <= self.n_at_start:\n            return False\n        self.gone -=",
        ("tests/selectors/greedy",),
    ),
    Fault(
        "the best status of several models is reported",
        "solvers/linear/_solve.py",
        "status = max((model.status for model in models), default=Status.CONVERGED)",
        "status = min((model.status for model in models), default=Status.CONVERGED)",
        ("tests/solvers/linear/test_solve.py",),
    ),
    Fault(
        "OFW has no size of its own",
        "selectors/stochastic/_ofw.py",
        "selected_size=int(np.count_nonzero(self.weights_ > 1.0 / active.size)),",
        "selected_size=None,",
        ("tests/selectors/stochastic/test_ofw.py",),
    ),
    Fault(
        "the noise of the papers' toy problems has another scale",
        "datasets/_generators.py",
        "NOISE_DEVIATION = 20.0",
        "NOISE_DEVIATION = 10.0",
        ("tests/datasets/test_generators.py",),
    ),
    Fault(
        "the two triples of the linear toy problem are equally frequent",
        "datasets/_generators.py",
        "rng.random(n_samples)[:, None] < 0.7",
        "rng.random(n_samples)[:, None] < 0.5",
        ("tests/datasets/test_generators.py",),
    ),
    Fault(
        "intervals of the curves take test folds for independent",
        "evaluation/significance/_pooled.py",
        'return float(np.mean([row["n_test"] / row["n_train"] for row in rows]))',
        "return 0.0",
        ("tests/evaluation/test_intervals.py",),
    ),
    Fault(
        "the seed of the command line is dropped",
        "cli/commands/_runs.py",
        'arguments = {"data": data, **options, "verbose": verbose}',
        'arguments = {"data": data, **options, "verbose": verbose, "random_state": 0}',
        ("tests/cli/test_runs.py", "tests/cli/test_options.py", "tests/cli/test_main.py"),
    ),
    Fault(
        "the metric of the command line is dropped",
        "cli/commands/_runs.py",
        'arguments = {"data": data, **options, "verbose": verbose}',
        'arguments = {"data": data, **options, "verbose": verbose, "metric": None}',
        ("tests/cli/test_runs.py", "tests/cli/test_options.py", "tests/cli/test_main.py"),
    ),
    Fault(
        "the sample groups of the command line are dropped",
        "cli/commands/_runs.py",
        'arguments = {"data": data, **options, "verbose": verbose}',
        'arguments = {"data": data, **options, "verbose": verbose, "sample_groups": None}',
        ("tests/cli/test_runs.py", "tests/cli/test_options.py", "tests/cli/test_main.py"),
    ),
    Fault(
        "Bonferroni's correction in place of Holm's",
        "engines/_error_control.py",
        "np.maximum.accumulate((m - rank + 1) * p[order])",
        "m * p[order]",
        ("tests/evaluation/test_significance.py",),
    ),
    Fault(
        "RFE values features of several classes by |w| instead of w²",
        "engines/elimination/_linear.py",
        "(self.weights() ** 2).sum(axis=1)",
        "np.abs(self.weights()).sum(axis=1)",
        ("tests/selectors/greedy/test_rfe.py", "tests/selectors/greedy/test_rfe_kernels.py"),
    ),
    Fault(
        "importances of several classes are summed without squares",
        "engines/elimination/_estimator.py",
        "(np.atleast_2d(values).astype(np.float64) ** 2).sum(axis=0)",
        "np.abs(np.atleast_2d(values).astype(np.float64)).sum(axis=0)",
        ("tests/selectors/greedy/test_rfe_drop_in.py",),
    ),
)
