"""Numbers behind every figure: pure functions of the records and the data, testable without drawing."""
