"""Models with a smooth loss and an ℓ1 penalty: logistic and Cox models, on a growing set of features."""
