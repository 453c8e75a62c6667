library(reticulate)
use_python("~/zeronorm-env/bin/python")
zeronorm <- import("zeronorm")

set.seed(1)
X <- matrix(rnorm(120 * 200), nrow = 120, dimnames = list(NULL, paste0("gene", 1:200)))
y <- rep(c("healthy", "tumour"), each = 60)
X[y == "tumour", 1:3] <- X[y == "tumour", 1:3] + 1.5

selector <- zeronorm$RFE(n_features_to_select = 3L)$fit(X, y)
print(which(selector$get_support()))

result <- zeronorm$select(as.data.frame(X), y, method = "rfe", features = 3L,
                          permutations = 0L, out = "from-r", force = TRUE)
print(result$features)
print(result$headline)
selected <- read.csv("from-r/selected.csv")
print(selected[, c("rank", "name", "frequency", "effect")])
