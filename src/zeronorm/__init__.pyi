from zeronorm.design import as_design as as_design
from zeronorm.evaluation.protocol import evaluate as evaluate
from zeronorm.selectors.filters.fcbf import FCBF as FCBF
from zeronorm.selectors.filters.fisher import FisherScore as FisherScore
from zeronorm.selectors.filters.gflip import GFlip as GFlip
from zeronorm.selectors.filters.golub import GolubScore as GolubScore
from zeronorm.selectors.filters.gram_schmidt_relief import GramSchmidtRelief as GramSchmidtRelief
from zeronorm.selectors.filters.interval import IntervalSelector as IntervalSelector
from zeronorm.selectors.filters.mutual_information import MutualInformation as MutualInformation
from zeronorm.selectors.filters.random import RandomSelector as RandomSelector
from zeronorm.selectors.filters.relief import Relief as Relief
from zeronorm.selectors.filters.shrunken_centroids import ShrunkenCentroids as ShrunkenCentroids
from zeronorm.selectors.filters.welch import WelchScore as WelchScore
from zeronorm.selectors.greedy.bound_elimination import BoundElimination as BoundElimination
from zeronorm.selectors.greedy.forward_least_squares import ForwardLeastSquares as ForwardLeastSquares
from zeronorm.selectors.greedy.grafting import Grafting as Grafting
from zeronorm.selectors.greedy.gram_schmidt import GramSchmidt as GramSchmidt
from zeronorm.selectors.greedy.optimal_brain_damage import OptimalBrainDamage as OptimalBrainDamage
from zeronorm.selectors.greedy.perceptron_rfe import PerceptronRFE as PerceptronRFE
from zeronorm.selectors.greedy.rfe import RFE as RFE
from zeronorm.selectors.greedy.sensitivity import SensitivityElimination as SensitivityElimination
from zeronorm.selectors.greedy.tree import TreeSelector as TreeSelector
from zeronorm.selectors.meta.knockoff_selector import KnockoffSelector as KnockoffSelector
from zeronorm.selectors.meta.probe_selector import ProbeSelector as ProbeSelector
from zeronorm.selectors.meta.selector_cv import SelectorCV as SelectorCV
from zeronorm.selectors.meta.stability_selection import StabilitySelection as StabilitySelection
from zeronorm.selectors.path import SelectionPath as SelectionPath
from zeronorm.selectors.scaling.adaptive_scaling import AdaptiveScaling as AdaptiveScaling
from zeronorm.selectors.scaling.ard import ARD as ARD
from zeronorm.selectors.scaling.kernel_multiplicative_update import KernelMultiplicativeUpdate as KernelMultiplicativeUpdate
from zeronorm.selectors.scaling.margin_lp import MarginLP as MarginLP
from zeronorm.selectors.scaling.max_entropy_discrimination import MaxEntropyDiscrimination as MaxEntropyDiscrimination
from zeronorm.selectors.scaling.radius_margin_scaling import RadiusMarginScaling as RadiusMarginScaling
from zeronorm.selectors.sparsity.arom import AROM as AROM
from zeronorm.selectors.sparsity.fsv import FSV as FSV
from zeronorm.selectors.sparsity.l1_svm import L1SVM as L1SVM
from zeronorm.selectors.sparsity.lasso import LassoSelector as LassoSelector
from zeronorm.selectors.sparsity.logistic_lasso import LogisticLasso as LogisticLasso
from zeronorm.selectors.sparsity.potential_svm import PotentialSVM as PotentialSVM
from zeronorm.selectors.sparsity.sparse_kernel_fisher import SparseKernelFisher as SparseKernelFisher
from zeronorm.selectors.sparsity.svm_weights import SVMWeights as SVMWeights
from zeronorm.selectors.sparsity.zeronorm_logistic import ZeroNormLogistic as ZeroNormLogistic
from zeronorm.selectors.sparsity.zeronorm_svm import ZeroNormSVM as ZeroNormSVM
from zeronorm.selectors.stochastic.ofw import OptimalFeatureWeighting as OptimalFeatureWeighting

__version__: str

__all__: list[str]
