"""Choice among rankings and predictors on inner folds, for AutoSelector."""
