"""The LASSO in a box, and the penalty that meets a bound on the norm."""
