"""The question and the answer: what a method may use (Problem) and every subset it visited (SelectionPath)."""
