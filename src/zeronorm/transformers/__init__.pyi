from zeronorm.transformers.spectrum import SpectrumPreprocessor as SpectrumPreprocessor

__all__: list[str]
