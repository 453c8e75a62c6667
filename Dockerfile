# The command in a container:
#   docker build -t zeronorm .
#   docker run --rm -v "$PWD:/data" zeronorm select data.csv --target outcome
FROM python:3.13-slim
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[app]" && rm -rf /source
# Loops are compiled while the image is built, so that runs start at once.
ENV NUMBA_CACHE_DIR=/var/cache/zeronorm
RUN mkdir -p "$NUMBA_CACHE_DIR" && zeronorm warmup && chmod -R a+rwX "$NUMBA_CACHE_DIR"
WORKDIR /data
ENTRYPOINT ["zeronorm"]
CMD ["--help"]
