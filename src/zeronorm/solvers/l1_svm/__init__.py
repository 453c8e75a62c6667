"""The ℓ1 support vector machine: as a linear program with column generation, and through its dual."""
