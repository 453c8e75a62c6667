from zeronorm.models.kernel_arom import KernelAROM as KernelAROM
from zeronorm.models.ofw_classifier import OFWClassifier as OFWClassifier
from zeronorm.models.relevance_vector import RelevanceVectorClassifier as RelevanceVectorClassifier
from zeronorm.models.relevance_vector import RelevanceVectorRegressor as RelevanceVectorRegressor
from zeronorm.models.sparse_kernel_svc import SparseKernelSVC as SparseKernelSVC

__all__: list[str]
