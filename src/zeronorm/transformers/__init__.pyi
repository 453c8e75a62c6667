from zeronorm.transformers._edge_features import EdgeFeatures as EdgeFeatures  # edge-features
from zeronorm.transformers._spectrum import SpectrumPreprocessor as SpectrumPreprocessor  # spectrum-preprocessor

__all__: list[str]
