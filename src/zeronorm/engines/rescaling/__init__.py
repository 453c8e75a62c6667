"""Iterative rescaling: train a model, rescale the features by its weights, repeat.

Used by AROM, ZeroNormSVM, SVMWeights, KernelMultiplicativeUpdate, JCFO, KernelAROM and SparseKernelSVC.
"""
