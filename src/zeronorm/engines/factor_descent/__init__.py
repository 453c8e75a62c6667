"""Descent on scaling factors along the gradient of a criterion.

Serves RadiusMarginScaling and AdaptiveScaling; the choice of a kernel also JCFO and KernelMultiplicativeUpdate.
"""
