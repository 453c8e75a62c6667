"""Mathematics of times to an event: curves of survival, the log-rank test, and measures of predicted risks."""
