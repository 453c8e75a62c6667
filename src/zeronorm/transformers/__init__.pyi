from zeronorm.transformers.edge_features import EdgeFeatures as EdgeFeatures  # edge-features
from zeronorm.transformers.spectrum import SpectrumPreprocessor as SpectrumPreprocessor  # spectrum-preprocessor

__all__: list[str]
