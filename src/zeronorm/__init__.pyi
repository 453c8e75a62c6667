from zeronorm.design import as_design as as_design
from zeronorm.evaluation.protocol import evaluate as evaluate
from zeronorm.selection.path import SelectionPath as SelectionPath
from zeronorm.selectors.filters.fcbf import FCBF as FCBF  # fcbf
from zeronorm.selectors.filters.fisher import FisherScore as FisherScore  # fisher
from zeronorm.selectors.filters.gflip import GFlip as GFlip  # gflip
from zeronorm.selectors.filters.golub import GolubScore as GolubScore  # golub
from zeronorm.selectors.filters.gram_schmidt_relief import GramSchmidtRelief as GramSchmidtRelief  # gram-schmidt-relief
from zeronorm.selectors.filters.interval import IntervalSelector as IntervalSelector  # interval
from zeronorm.selectors.filters.mutual_information import MutualInformation as MutualInformation  # mutual-information
from zeronorm.selectors.filters.random import RandomSelector as RandomSelector  # random
from zeronorm.selectors.filters.relief import Relief as Relief  # relief
from zeronorm.selectors.filters.shrunken_centroids import ShrunkenCentroids as ShrunkenCentroids  # shrunken-centroids
from zeronorm.selectors.filters.welch import WelchScore as WelchScore  # welch
from zeronorm.selectors.greedy.bound_elimination import BoundElimination as BoundElimination  # bound-elimination
from zeronorm.selectors.greedy.forward_least_squares import ForwardLeastSquares as ForwardLeastSquares  # forward-least-squares
from zeronorm.selectors.greedy.grafting import Grafting as Grafting  # grafting
from zeronorm.selectors.greedy.gram_schmidt import GramSchmidt as GramSchmidt  # gram-schmidt
from zeronorm.selectors.greedy.optimal_brain_damage import OptimalBrainDamage as OptimalBrainDamage  # optimal-brain-damage
from zeronorm.selectors.greedy.perceptron_rfe import PerceptronRFE as PerceptronRFE  # perceptron-rfe
from zeronorm.selectors.greedy.rfe import RFE as RFE  # rfe
from zeronorm.selectors.greedy.rfecv import RFECV as RFECV  # rfecv
from zeronorm.selectors.greedy.sensitivity import SensitivityElimination as SensitivityElimination  # sensitivity
from zeronorm.selectors.greedy.tree import TreeSelector as TreeSelector  # tree
from zeronorm.selectors.meta.auto import AutoSelector as AutoSelector  # auto
from zeronorm.selectors.meta.consensus import Consensus as Consensus  # consensus
from zeronorm.selectors.meta.knockoff_selector import KnockoffSelector as KnockoffSelector  # knockoff-selector
from zeronorm.selectors.meta.probe_selector import ProbeSelector as ProbeSelector  # probe-selector
from zeronorm.selectors.meta.selector_cv import SelectorCV as SelectorCV  # selector-cv
from zeronorm.selectors.meta.stability_selection import StabilitySelection as StabilitySelection  # stability-selection
from zeronorm.selectors.scaling.adaptive_scaling import AdaptiveScaling as AdaptiveScaling  # adaptive-scaling
from zeronorm.selectors.scaling.ard import ARD as ARD  # ard
from zeronorm.selectors.scaling.jcfo import JCFO as JCFO  # jcfo
from zeronorm.selectors.scaling.kernel_multiplicative_update import KernelMultiplicativeUpdate as KernelMultiplicativeUpdate  # kernel-multiplicative-update
from zeronorm.selectors.scaling.margin_lp import MarginLP as MarginLP  # margin-lp
from zeronorm.selectors.scaling.max_entropy_discrimination import MaxEntropyDiscrimination as MaxEntropyDiscrimination  # max-entropy-discrimination
from zeronorm.selectors.scaling.radius_margin_scaling import RadiusMarginScaling as RadiusMarginScaling  # radius-margin-scaling
from zeronorm.selectors.sparsity.arom import AROM as AROM  # arom
from zeronorm.selectors.sparsity.fsv import FSV as FSV  # fsv
from zeronorm.selectors.sparsity.l1_svm import L1SVM as L1SVM  # l1-svm
from zeronorm.selectors.sparsity.lasso import LassoSelector as LassoSelector  # lasso
from zeronorm.selectors.sparsity.logistic_lasso import LogisticLasso as LogisticLasso  # logistic-lasso
from zeronorm.selectors.sparsity.potential_svm import PotentialSVM as PotentialSVM  # potential-svm
from zeronorm.selectors.sparsity.sparse_kernel_fisher import SparseKernelFisher as SparseKernelFisher  # sparse-kernel-fisher
from zeronorm.selectors.sparsity.svm_weights import SVMWeights as SVMWeights  # svm-weights
from zeronorm.selectors.sparsity.zeronorm_logistic import ZeroNormLogistic as ZeroNormLogistic  # zeronorm-logistic
from zeronorm.selectors.sparsity.zeronorm_svm import ZeroNormSVM as ZeroNormSVM  # zeronorm-svm
from zeronorm.selectors.stochastic.ofw import OptimalFeatureWeighting as OptimalFeatureWeighting  # ofw
from zeronorm.workflow.result import Result as Result
from zeronorm.workflow.run import compare as compare
from zeronorm.workflow.run import select as select

__version__: str

__all__: list[str]
