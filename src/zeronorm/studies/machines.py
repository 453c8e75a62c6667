"""Predictors that judge subsets in several studies."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

COSTS = (0.01, 0.1, 1.0, 10.0)


def linear_machine(C: float = 1.0) -> Any:
    """Standardisation and a linear support vector machine."""
    return make_pipeline(StandardScaler(), SVC(kernel="linear", C=C))


def tuned_linear_machine(costs: tuple[float, ...] = COSTS, cv: int = 3) -> Any:
    """The same with its cost chosen by cross-validation inside the training part."""
    return GridSearchCV(linear_machine(), {"svc__C": list(costs)}, cv=cv)


def rbf_machine(C: float = 1.0, gamma: float | str = "scale") -> Any:
    """Standardisation and a support vector machine with a Gaussian kernel."""
    return make_pipeline(StandardScaler(), SVC(kernel="rbf", C=C, gamma=gamma))


def polynomial_machine(C: float = 1.0, degree: int = 2) -> Any:
    """Standardisation and a support vector machine with the kernel (1 + x·x'/p)^degree."""
    return make_pipeline(StandardScaler(), SVC(kernel="poly", C=C, degree=degree, coef0=1.0, gamma="auto"))
