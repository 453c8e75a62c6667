from zeronorm.design import as_design as as_design
from zeronorm.selectors.filters.fisher import FisherScore as FisherScore
from zeronorm.selectors.path import SelectionPath as SelectionPath

__version__: str

__all__: list[str]
