# The base image is pinned by digest, which the update bot replaces; `--build-arg PYTHON_IMAGE=...` takes another, such as a
# mirror's.
# 3.13 by figures: with PGO, as here, a question costs 0.87 of what it does on 3.11 without, 3.14 as much with 9 MiB more
# (docs/decisions/python-version.md).
ARG PYTHON_IMAGE=base

FROM python:3.13-slim-trixie@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS base

FROM ${PYTHON_IMAGE} AS build
ARG PIP_INDEX_URL
WORKDIR /opt/toolchat
RUN python -m venv --without-pip /opt/venv && python -m venv --without-pip /opt/build
COPY requirements.lock requirements-build.lock ./
RUN pip --python /opt/venv/bin/python install --no-cache-dir --disable-pip-version-check \
    --no-deps --require-hashes --only-binary=:all: -r requirements.lock && \
    pip --python /opt/build/bin/python install --no-cache-dir --disable-pip-version-check \
    --no-deps --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY toolchat/ toolchat/
RUN pip --python /opt/build/bin/python wheel --no-cache-dir --disable-pip-version-check \
    --no-deps --no-index --no-build-isolation --wheel-dir dist . && \
    pip --python /opt/venv/bin/python install --no-cache-dir --disable-pip-version-check \
    --no-deps --no-index dist/*.whl
COPY app/ app/
RUN chmod -R a+rX,go-w app && python -m compileall -q app && mkdir --mode=775 data

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="toolchat" \
      org.opencontainers.image.description="An HTTP service that answers chat questions with live tools" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH="/opt/venv/bin:$PATH" \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    STATE_URL=sqlite:////data/toolchat.db \
    SERVER_HOST=0.0.0.0 \
    SERVER_PORT=8083 \
    TOOLS_PATH=app.tools
# Its tools are the example application's, found below the working directory.
WORKDIR /opt/toolchat
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/toolchat/app app/
# Conversations and other state: the only place beside /tmp that is written to. It belongs to group 0, which every user
# has that a platform such as OpenShift chooses.
COPY --from=build --chown=10001:0 /opt/toolchat/data /data/
VOLUME /data
USER 10001:0
EXPOSE 8083
STOPSIGNAL SIGTERM
# Not urllib: it would ask the proxy that HTTP_PROXY names.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", \
    "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('SERVER_PORT') or 8083), timeout=4); c.request('GET', '/health/live'); sys.exit(c.getresponse().status != 200)"]
CMD ["toolchat", "serve"]
