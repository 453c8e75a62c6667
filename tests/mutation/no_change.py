"""Faults that were examined one by one and change no result, with the reason.

The key is the file, the function, the text of the line and the change; an entry is void when the line changes.
"""

from __future__ import annotations

Key = tuple[str, str, str, str]

CHANGES_NOTHING: dict[Key, str] = {
    (
        "evaluation/significance/_effects.py",
        "_noncentrality",
        "reach = 10.0 + 2.0 * abs(t)",
        "2.0 → 4.0",
    ): "ends of a search between which the root lies in any case",
    (
        "evaluation/significance/_effects.py",
        "_noncentrality",
        "reach = 10.0 + 2.0 * abs(t)",
        "10.0 → 20.0",
    ): "ends of a search between which the root lies in any case",
    (
        "evaluation/significance/_paired.py",
        "corrected_resampled_t",
        "if error <= 1e-14 * np.abs(d).max(initial=0.0):  # up to rounding",
        "<= → <",
    ): "an error that equals the limit of rounding to the last digit; zero is below it",
    (
        "solvers/l1_svm/_dual.py",
        "L1SvmInteriorProgram._solve_simplex",
        "self._simplex = L1SvmDualProgram(signed.design, self.y, C=self.cost, signed=signed)",
        "L1SvmDualProgram: swap signed.design and self.y",
    ): "the two are not read where signed is given",
    (
        "solvers/l1_svm/_interior_point.py",
        "_InteriorPoint.go_back",
        "rows, features = self.wrong or (np.arange(0), np.arange(0))",
        "0 → 1",
    ): "one more row or feature comes back into the program, whose end is checked against all of them",
    (
        "solvers/l1_svm/_newton.py",
        "vertex",
        "multipliers[guess.kink] += Q @ dtrtrs(R, missing, trans=1)[0]",
        "1 → 2",
    ): "the conjugate transpose of real numbers is their transpose",
    (
        "solvers/svm/_multipliers.py",
        "_Multipliers._length",
        "length = 0.5 * (low + high) if high < np.inf else 2.0 * low",
        "< → <=",
    ): "without an upper end the length only grows, so that it leaves the interval only where there is one",
    (
        "solvers/l1_svm/_tall.py",
        "_solve_near",
        "short, size = rows.short(weights), 2 * size",
        "2 → 3",
    ): "how many more rows are taken in next; the end is checked against all of them",
    (
        "solvers/svm/_box_dual.py",
        "first_bound",
        "if speed != 0.0 and room < length * abs(speed):",
        "< → <=",
    ): "of two variables that meet their bounds at the same moment either may be named first",
    (
        "solvers/sparse_bayes/_sequential.py",
        "_State.result",
        'with np.errstate(divide="ignore", invalid="ignore"):',
        "np.errstate: without divide=",
    ): "s is zero only for a column of zeros, whose q is zero too: 0 / 0 is an invalid value, no division by zero",
    (
        "solvers/svm/_multipliers.py",
        "solve_by_multipliers",
        "n_steps = method.minimize(0.1 * max(goal * method.primal, min(gap, method.primal)))",
        "0.1 → 0.2",
    ): "how exactly the minima on the way are met; the end is decided by the gap",
    (
        "result/_models.py",
        "LinearModel.save",
        'json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\\n", "utf-8"',
        "json.dumps: without indent=",
    ): "the layout of a file for models",
    (
        "solvers/svm/_tall.py",
        "_exact_line_search",
        "length = 0.5 * (low + high) if high < np.inf else 2.0 * low",
        "< → <=",
    ): "without an upper end the length only grows, so that it leaves the interval only where there is one",
    (
        "selectors/greedy/_rfecv.py",
        "_r2_of_columns",
        "if y.size < 2 or scale == 0.0:  # scikit-learn defines R² in these cases",
        "2 → 3",
    ): "of two samples scikit-learn computes what the formula says",
    (
        "selectors/filters/_interval.py",
        "IntervalSelector._splitter",
        "seed = int(problem.rng.integers(2**31 - 1))",
        "- → +",
    ): "other seeds, which all are valid",
    (
        "selectors/filters/_interval.py",
        "IntervalSelector._splitter",
        "seed = int(problem.rng.integers(2**31 - 1))",
        "1 → 2",
    ): "other seeds, which all are valid",
    (
        "selectors/scaling/_jcfo.py",
        "JCFO._iterate",
        "if rise <= self.tol * (1.0 + abs(model.objective)) and not pruned:",
        "1.0 → 2.0",
    ): "how exactly, not what: the tolerance for an objective near zero, and the climb that follows has its own",
    ("design/_products.py", "transpose_dot_of_blocks", "if is_tall(design):", "not (is_tall(design))"): (
        "the same product by bands of rows or of columns: how fast, not what"
    ),
    ("design/_stats.py", "_class_codes", "if codes.min(initial=0) < 0:", "0 → 1"): (
        "the number that stands for no codes at all is not negative either; fewer than one would refuse the first class"
    ),
    (
        "design/_gram.py",
        "_add_gram_in_tiles",
        "width = min(design.n_features, max(1, LARGEST_BLOCK_BYTES // (8 * n)))",
        "1 → 2",
    ): "the least width of a block: how fast, not what",
    ("design/_dask.py", "DaskDesign._dot", "if self._prefers_rows:", "not (self._prefers_rows)"): (
        "the same product by bands of rows or of columns: how fast, not what"
    ),
    (
        "workflow/_checks.py",
        "_copies_of_target",
        "found.append(start + np.flatnonzero(correlation > SUSPICIOUS_CORRELATION))",
        "> → >=",
    ): "a computed correlation that equals the limit to the last digit",
    (
        "engines/_penalty_walk.py",
        "PenaltyWalk.ends",
        "return self.models.loss <= (1.0 - EXPLAINED) * self.models.loss_without_features",
        "<= → <",
    ): "a loss that equals the limit to the last digit",
    (
        "selectors/sparsity/_l1_svm.py",
        "_CostPath.__init__",
        "self.unit = max(float(np.abs(y - y.mean()).max()) for _, y in tasks) if epsilon is not None else 1.0",
        "- → +",
    ): "the target was moved to zero before, and the unit only tells which weights are rounding",
    (
        "selectors/sparsity/_sparse_kernel_fisher.py",
        "_Fisher._stiffness",
        "scale = max(float(z @ z), 1e-3 * float(self.weight.sum()) * self.mean_difference[self.first] ** 2)",
        "2 → 3",
    ): "the cost of the constraint: how fast the multipliers settle, not where",
    (
        "selectors/scaling/_max_entropy_discrimination.py",
        "MaxEntropyDiscrimination.__init__",
        "max_iter: int = 500,",
        "500 → 501",
    ): "a limit of iterations one off",
    ("selectors/_base.py", "BaseSelector._validate", "elif _is_plain(X, y):", "_is_plain: swap X and y"): (
        "all data go through the checks of scikit-learn, which find nothing to do: how fast, not what"
    ),
    (
        "selectors/_base.py",
        "BaseSelector._route",
        "return Bunch(estimator=Bunch(fit={}))",
        "Bunch: without estimator=",
    ): "without an estimator nobody reads it",
    (
        "engines/trees/_nodes.py",
        "Nodes.of",
        "feature=np.where(tree.children_left < 0, -1, tree.feature),",
        "1 → 2",
    ): "any negative number marks a leaf: features are only compared with zero",
    (
        "selectors/_base.py",
        "_drop_unweighted",
        "sample_weight, np.empty((design.shape[0], 1)), dtype=np.float64, ensure_non_negative=True",
        "1 → 2",
    ): "of the array only the number of rows is read",
    (
        "selectors/greedy/_perceptron_rfe.py",
        "_pass_until_clean",
        "height = max(1, _POWERS_PER_CALL // _powers_of_a_row(X))",
        "1 → 2",
    ): "the least height of a block: how fast, not what",
    ("design/_column_kernels.py", "transpose_columns", "in_eights = p // 8 * 8", "* → /"): (
        "columns that the first loop leaves are copied by the second, one by one"
    ),
    (
        "design/_column_kernels.py",
        "rows_transpose_dot",
        "n, in_eights = rows.shape[0], rows.shape[0] // 8 * 8",
        "8 → 9",
    ): "of the two, that which leaves more rows to the second loop; the other one is found",
    ("design/_column_kernels.py", "_range", "smallest, largest = LARGEST_KEY, -LARGEST_KEY - 1", "- → +"): (
        "the keys between belong to no number"
    ),
    ("design/_index.py", "by_descending_value", "n_bits = int(values.size - 1).bit_length()", "- → +"): (
        "one bit more than the positions need"
    ),
    (
        "design/_array_api.py",
        "ArrayApiDesign._sandwich",
        "height = max(1, block_bytes(self._array, row_bytes * self.n_samples) // row_bytes)",
        "1 → 2",
    ): "the least height of a block: how fast, not what",
    ("design/_chunked.py", "ChunkedDesign._transpose_dot", "if is_tall(self):", "never (is_tall(self))"): (
        "the same product by bands of rows or of columns: how fast, not what"
    ),
    (
        "design/_convert.py",
        "_as_float",
        'np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64',
        "4 → 5",
    ): "there are no numbers of five bytes",
    (
        "solvers/l1_svm/_newton.py",
        "vertex",
        "if np.any(weights[guess.active] * guess.signs <= 0.0):",
        "* → /",
    ): "the signs are one or minus one",
    (
        "solvers/linear/_working_set.py",
        "_full_step",
        "if np.abs(after).max() > 0.5 * np.abs(gradient).max():",
        "> → >=",
    ): "a gradient that is halved to the last digit",
    (
        "design/_outer_products.py",
        "_mirror_upper_triangle",
        "for j in range(max(left, i + 1), min(left + _MIRRORED, n)):",
        "+ → -",
    ): "the diagonal and what the row before has mirrored already are written once more",
    ("design/_column_kernels.py", "_range", "largest = key if key > largest else largest", "> → >="): (
        "of two equal keys either is the largest"
    ),
    (
        "design/_stats_kernels.py",
        "rows_stats",
        "X, left, rows, w, center[:m], first, second, low[out : out + m], high[out : out + m]",
        "+ → -",
    ): "a slice written too short in compiled code, which has no bounds",
    (
        "solvers/l1_svm/_program.py",
        "L1SvmProgram._solve_hard",
        "bound = 10.0 * max(float(penalties.max(initial=0.0)), float(self.cost[~hard].max(initial=0.0)), 1e-6)",
        "0.0 → 1.0",
    ): "a cost to begin with, which is raised until it is exact",
    ("solvers/l1_svm/_tall.py", "_solve_rows", "if n <= 2 * WINDOW:", "<= → <"): (
        "whether a part of the rows is asked first; the end is checked against all of them"
    ),
    (
        "solvers/sparse_bayes/_posterior.py",
        "best_variance_of",
        "bend += s[c] * s[c] / (grown * grown) - 2.0 * s[c] * square / grown",
        "- → +",
    ): "the interval is halved in place of Newton's steps, to the same end",
    ("solvers/svm/_smo.py", "smo", "continue", "leave out continue"): (
        "that after a stall: the search ends at the same count, after all variables have grown together once more"
    ),
    ("solvers/l1_svm/_tall.py", "module", "MOST_SHARING_STEPS = 30", "30 → 31"): "a bound of iterations",
    ("solvers/svm/_tall.py", "set_step", "return 1.0 / most if most > 0.0 else np.inf", "> → >="): (
        "in these loops one over zero is infinite"
    ),
    (
        "design/_dense.py",
        "DenseDesign._surely_finite",
        "if not (isinstance(self._rows, range) and isinstance(self._columns, range)):",
        "never (not (isinstance(self._rows, range) and isinstance(self._colu)",
    ): "scattered data are contiguous all at once in place of block by block: how fast, not what",
    (
        "design/_dask.py",
        "_shared",
        "return delayed(values, pure=False, traverse=False)",
        "delayed: without pure=",
    ): ("the name of a task"),
    (
        "design/_sparse.py",
        "SparseDesign._gram_adjoint",
        "if not self._pairs_are_cheaper():",
        "never (not self._pairs_are_cheaper())",
    ): "the same sums by pairs of stored values: how fast, not what",
    (
        "design/_array_api.py",
        "ArrayApiDesign.distances",
        "pairwise_distances, kernels=difference_kernels_for(self._array), squared=squared",
        "functools.partial: without kernels=",
    ): "the same sums by functions of the library: how fast, not what",
    (
        "design/_array_api.py",
        "ArrayApiDesign.difference_sums",
        "at_once = max(1, min(len(first), self.n_samples))",
        "1 → 2",
    ): "the least number of pairs at a time: how fast, not what",
    (
        "design/_sparse.py",
        "SparseDesign._gram_adjoint",
        "if not self._pairs_are_cheaper():",
        "not (not self._pairs_are_cheaper())",
    ): "the same sums by pairs of stored values or by blocks: how fast, not what",
    (
        "design/_sparse.py",
        "SparseFileDesign._part",
        "size = share * float(self._stored_bytes(columns).sum()) + 8 * len(columns)",
        "+ → -",
    ): "a limit of memory: the same data on disk or in memory",
    (
        "design/_outer_products.py",
        "add_outer_square_in_tiles",
        "if block.size == 0:",
        "never (block.size == 0)",
    ): "products without rows or columns add nothing",
    (
        "design/_stats_kernels.py",
        "_add_row_moments",
        "high[j] = largest if largest > high[j] else high[j]",
        "> → >=",
    ): "of two equal numbers either is the largest",
    (
        "design/_annotated.py",
        "SparseBands.stored",
        'found = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csc")',
        "sparse.vstack: without format=",
    ): "SciPy stacks parts that are all by column by column",
    (
        "selectors/sparsity/_lasso.py",
        "_descend",
        "above = max(2.0 * penalty - min(before, 2.0 * penalty), 0.5 * penalty)",
        "2.0 → 4.0",
    ): "which columns are read first; those that are missing are found afterwards",
    (
        "selectors/filters/_interval.py",
        "IntervalSelector._splits",
        "seed = int(problem.rng.integers(2**31 - 1))",
        "** → *",
    ): "other seeds, which all are valid",
    (
        "selectors/scaling/_radius_margin_scaling.py",
        "RadiusMarginScaling._splits",
        "seed = int(problem.rng.integers(2**31))",
        "** → *",
    ): "other seeds, which all are valid",
    (
        "engines/trees/_cuts.py",
        "between",
        "return float(midpoint if low <= midpoint < high else low)",
        "<= → <",
    ): "a middle that is the lower number is the answer either way",
    (
        "selectors/_base.py",
        "BaseSelector._validate",
        "design = as_design(X, allow_nan=self._allow_nan, check_finite=False)",
        "as_design: without allow_nan=",
    ): "it is not read where nothing is checked; the check follows with the same setting",
}
