"""Gradient descent on the scaling factors of the features.

Used by RadiusMarginScaling and AdaptiveScaling; JCFO and KernelMultiplicativeUpdate use its choice of a kernel.
"""
