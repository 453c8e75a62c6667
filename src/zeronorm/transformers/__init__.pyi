from zeronorm.transformers.edge_features import EdgeFeatures as EdgeFeatures
from zeronorm.transformers.spectrum import SpectrumPreprocessor as SpectrumPreprocessor

__all__: list[str]
