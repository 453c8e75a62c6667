from zeronorm.models._cox_regression import CoxRegression as CoxRegression  # cox-regression
from zeronorm.models._kernel_arom import KernelAROM as KernelAROM  # kernel-arom
from zeronorm.models._ofw_classifier import OFWClassifier as OFWClassifier  # ofw-classifier
from zeronorm.models._relevance_vector import RelevanceVectorClassifier as RelevanceVectorClassifier  # relevance-vector-classifier
from zeronorm.models._relevance_vector import RelevanceVectorRegressor as RelevanceVectorRegressor  # relevance-vector-regressor
from zeronorm.models._sparse_kernel_svc import SparseKernelSVC as SparseKernelSVC  # sparse-kernel-svc

__all__: list[str]
