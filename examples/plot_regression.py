"""
Regression: which measurements predict the progression?
=======================================================

The diabetes data of scikit-learn with 40 columns of noise added. Selectors for both tasks accept
``task="regression"``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from zeronorm import GramSchmidt, Relief, SelectorCV

data = load_diabetes(as_frame=True)
rng = np.random.default_rng(0)
noise = rng.normal(size=(len(data.data), 40))
X = np.column_stack([data.data, noise])
names = [*data.data.columns, *(f"noise {i}" for i in range(40))]

chosen = SelectorCV(GramSchmidt(task="regression"), sizes=range(1, 16), random_state=0).fit(X, data.target)
print("chosen by cross-validation:", [names[i] for i in chosen.get_support(indices=True)])

# %%
relief = Relief(task="regression").fit(X, data.target)
order = np.argsort(-relief.scores_)[:12]
fig, ax = plt.subplots()
ax.barh([names[i] for i in order][::-1], relief.scores_[order][::-1])
ax.set(xlabel="score of Relief for regression")
