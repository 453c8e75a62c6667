"""The default parameters of the solvers: C, epsilon, tolerances and iteration limits."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest

from zeronorm.solvers import _geometry as geometry
from zeronorm.solvers import _lasso as lasso
from zeronorm.solvers import _max_entropy as max_entropy
from zeronorm.solvers import _neural_network as neural_network
from zeronorm.solvers import linear
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers.l1_svm._dual import L1SvmDualProgram, L1SvmInteriorProgram
from zeronorm.solvers.l1_svm._program import L1SvmProgram
from zeronorm.solvers.l1_svm._tall import L1SvmTallProgram
from zeronorm.solvers.linear import _smooth as smooth
from zeronorm.solvers.sparse_bayes._posterior import GaussianLikelihood
from zeronorm.solvers.sparse_bayes._sequential import solve_sparse_bayes
from zeronorm.solvers.svm import _box_dual as box_dual
from zeronorm.solvers.svm import _dual as dual
from zeronorm.solvers.svm import _free_set as free_set
from zeronorm.solvers.svm import _joint_multiclass as joint_multiclass
from zeronorm.solvers.svm import _multipliers as multipliers
from zeronorm.solvers.svm import _tall as tall

PAIRS_OF_STEPS = 2_000_000
TWO_GIB = 2 * 1024**3
MODEL = {"C": 1.0, "loss": "hinge", "tol": 1e-6}
REGRESSION = {"C": 1.0, "epsilon": 0.1, "loss": "epsilon_insensitive", "tol": 1e-6}
DEFAULTS = [
    (dual.solve_svm_dual, {**MODEL, "max_iter": PAIRS_OF_STEPS}),
    (dual.solve_svr_dual, {**REGRESSION, "max_iter": PAIRS_OF_STEPS}),
    (linear.solve, {"state": None, "tol": 1e-6, "max_iter": None, "way": None}),
    (linear.prefers_gram, {"memory_budget": TWO_GIB}),
    (multipliers.solve_by_multipliers, {"start": None, "tol": 1e-6}),
    (tall.solve_squared_loss, {"start": None, "tol": 1e-6, "max_iter": 200}),
    (tall.solve_linear_loss, {"start": None, "tol": 1e-6, "max_iter": 100}),
    (tall.newton_step, {"tol": 1e-3, "max_iter": 500}),
    (joint_multiclass.solve_weston_watkins, {**MODEL, "max_iter": 1000}),
    (box_dual.solve_box, {"tol": 1e-9}),
    (free_set.pivot_free_set, {"all_free": False, "product": None}),
    (geometry.solve_enclosing_sphere, {"tol": 1e-8, "max_iter": 1_000_000}),
    (smooth.solve_on_gram, {"start": None, "tol": 1e-8, "max_iter": 100}),
    (smooth.solve_in_weights, {"start": None, "tol": 1e-8, "max_iter": 100}),
    (max_entropy.solve_max_entropy, {"tol": 1e-6, "max_iter": 200}),
    (neural_network.train_network, {"tol": 1e-5, "max_iter": 1000}),
    (solve_sparse_bayes, {"tol": 1e-3, "max_iter": 1000, "hyperprior": (0.0, 0.0)}),
    (GaussianLikelihood, {"noise_variance": None, "min_noise": 1e-3}),
    (LinearProgram, {"col_lower": 0.0, "col_upper": np.inf, "presolve": True}),
    (LinearProgram.add_columns, {"col_lower": 0.0, "col_upper": np.inf}),
    (lasso.follow_lasso_path, {"removes": True, "most_norm": np.inf}),
    (lasso.LassoStep.of, {"rounding": 0.0}),
    *((program.solve, {"penalty": 1.0}) for program in (L1SvmProgram, L1SvmDualProgram, L1SvmTallProgram)),
    (L1SvmInteriorProgram.solve, {"penalty": 1.0}),
    (L1SvmInteriorProgram.solve_interior, {"penalty": 1.0}),
]


@pytest.mark.parametrize(("function", "wanted"), DEFAULTS, ids=[f.__qualname__ for f, _ in DEFAULTS])
def test_the_defaults(function, wanted):
    parameters = signature(function).parameters
    assert {name: parameters[name].default for name in wanted} == wanted
