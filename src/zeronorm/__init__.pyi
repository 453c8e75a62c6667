from zeronorm.design import as_design as as_design
from zeronorm.engines.certificates._gap import optimality_gap as optimality_gap
from zeronorm.evaluation._protocol import evaluate as evaluate
from zeronorm.evaluation.learning._curve import learning_curve as learning_curve
from zeronorm.evaluation.stand_ins._substitutes import substitutes as substitutes
from zeronorm.selection._path import SelectionPath as SelectionPath
from zeronorm.selectors.filters._concordance_score import ConcordanceScore as ConcordanceScore  # concordance-score
from zeronorm.selectors.filters._cox_score import CoxScore as CoxScore  # cox-score
from zeronorm.selectors.filters._fcbf import FCBF as FCBF  # fcbf
from zeronorm.selectors.filters._fisher import FisherScore as FisherScore  # fisher
from zeronorm.selectors.filters._gflip import GFlip as GFlip  # gflip
from zeronorm.selectors.filters._golub import GolubScore as GolubScore  # golub
from zeronorm.selectors.filters._gram_schmidt_relief import GramSchmidtRelief as GramSchmidtRelief  # gram-schmidt-relief
from zeronorm.selectors.filters._interval import IntervalSelector as IntervalSelector  # interval
from zeronorm.selectors.filters._log_rank import LogRankScore as LogRankScore  # log-rank
from zeronorm.selectors.filters._mutual_information import MutualInformation as MutualInformation  # mutual-information
from zeronorm.selectors.filters._random import RandomSelector as RandomSelector  # random
from zeronorm.selectors.filters._relief import Relief as Relief  # relief
from zeronorm.selectors.filters._shrunken_centroids import ShrunkenCentroids as ShrunkenCentroids  # shrunken-centroids
from zeronorm.selectors.filters._variance import VarianceScore as VarianceScore  # variance
from zeronorm.selectors.filters._welch import WelchScore as WelchScore  # welch
from zeronorm.selectors.greedy._bound_elimination import BoundElimination as BoundElimination  # bound-elimination
from zeronorm.selectors.greedy._forward_least_squares import ForwardLeastSquares as ForwardLeastSquares  # forward-least-squares
from zeronorm.selectors.greedy._grafting import Grafting as Grafting  # grafting
from zeronorm.selectors.greedy._gram_schmidt import GramSchmidt as GramSchmidt  # gram-schmidt
from zeronorm.selectors.greedy._optimal_brain_damage import OptimalBrainDamage as OptimalBrainDamage  # optimal-brain-damage
from zeronorm.selectors.greedy._perceptron_rfe import PerceptronRFE as PerceptronRFE  # perceptron-rfe
from zeronorm.selectors.greedy._rfe import RFE as RFE  # rfe
from zeronorm.selectors.greedy._rfecv import RFECV as RFECV  # rfecv
from zeronorm.selectors.greedy._sensitivity import SensitivityElimination as SensitivityElimination  # sensitivity
from zeronorm.selectors.greedy._tree import TreeSelector as TreeSelector  # tree
from zeronorm.selectors.meta._auto import AutoSelector as AutoSelector  # auto
from zeronorm.selectors.meta._consensus import Consensus as Consensus  # consensus
from zeronorm.selectors.meta._dummy_selector import DummySelector as DummySelector  # dummy-selector
from zeronorm.selectors.meta._knockoff_selector import KnockoffSelector as KnockoffSelector  # knockoff-selector
from zeronorm.selectors.meta._probe_selector import ProbeSelector as ProbeSelector  # probe-selector
from zeronorm.selectors.meta._selector_cv import SelectorCV as SelectorCV  # selector-cv
from zeronorm.selectors.meta._stability_selection import StabilitySelection as StabilitySelection  # stability-selection
from zeronorm.selectors.scaling._adaptive_scaling import AdaptiveScaling as AdaptiveScaling  # adaptive-scaling
from zeronorm.selectors.scaling._ard import ARD as ARD  # ard
from zeronorm.selectors.scaling._jcfo import JCFO as JCFO  # jcfo
from zeronorm.selectors.scaling._kernel_multiplicative_update import KernelMultiplicativeUpdate as KernelMultiplicativeUpdate  # kernel-multiplicative-update
from zeronorm.selectors.scaling._margin_lp import MarginLP as MarginLP  # margin-lp
from zeronorm.selectors.scaling._max_entropy_discrimination import MaxEntropyDiscrimination as MaxEntropyDiscrimination  # max-entropy-discrimination
from zeronorm.selectors.scaling._radius_margin_scaling import RadiusMarginScaling as RadiusMarginScaling  # radius-margin-scaling
from zeronorm.selectors.sparsity._arom import AROM as AROM  # arom
from zeronorm.selectors.sparsity._best_subset import BestSubset as BestSubset  # best-subset
from zeronorm.selectors.sparsity._cox_lasso import CoxLasso as CoxLasso  # cox-lasso
from zeronorm.selectors.sparsity._fsv import FSV as FSV  # fsv
from zeronorm.selectors.sparsity._l1_svm import L1SVM as L1SVM  # l1-svm
from zeronorm.selectors.sparsity._lasso import LassoSelector as LassoSelector  # lasso
from zeronorm.selectors.sparsity._logistic_lasso import LogisticLasso as LogisticLasso  # logistic-lasso
from zeronorm.selectors.sparsity._potential_svm import PotentialSVM as PotentialSVM  # potential-svm
from zeronorm.selectors.sparsity._sparse_kernel_fisher import SparseKernelFisher as SparseKernelFisher  # sparse-kernel-fisher
from zeronorm.selectors.sparsity._svm_weights import SVMWeights as SVMWeights  # svm-weights
from zeronorm.selectors.sparsity._zeronorm_logistic import ZeroNormLogistic as ZeroNormLogistic  # zeronorm-logistic
from zeronorm.selectors.sparsity._zeronorm_svm import ZeroNormSVM as ZeroNormSVM  # zeronorm-svm
from zeronorm.selectors.stochastic._ofw import OptimalFeatureWeighting as OptimalFeatureWeighting  # ofw
from zeronorm.workflow._cohort import Cohort as Cohort
from zeronorm.workflow._result import Result as Result
from zeronorm.workflow._run import apply as apply
from zeronorm.workflow._run import compare as compare
from zeronorm.workflow._run import select as select
from zeronorm.workflow._run import test_panel as test_panel

__version__: str

__all__: list[str]
