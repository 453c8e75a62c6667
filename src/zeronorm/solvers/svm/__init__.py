"""Support vector machines: dual on a Gram matrix, tall data, regression, joint multi-class."""
