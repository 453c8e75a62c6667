"""Train a model, rescale the features by its weights, repeat.

Serves AROM, ZeroNormSVM, SVMWeights, KernelMultiplicativeUpdate, JCFO, KernelAROM and SparseKernelSVC.
"""
