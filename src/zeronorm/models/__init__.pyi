from zeronorm.models.kernel_arom import KernelAROM as KernelAROM  # kernel-arom
from zeronorm.models.ofw_classifier import OFWClassifier as OFWClassifier  # ofw-classifier
from zeronorm.models.relevance_vector import RelevanceVectorClassifier as RelevanceVectorClassifier  # relevance-vector-classifier
from zeronorm.models.relevance_vector import RelevanceVectorRegressor as RelevanceVectorRegressor  # relevance-vector-regressor
from zeronorm.models.sparse_kernel_svc import SparseKernelSVC as SparseKernelSVC  # sparse-kernel-svc

__all__: list[str]
