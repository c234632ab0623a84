# syntax=docker/dockerfile:1
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/draftgauge
RUN /opt/draftgauge/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY acceptance acceptance
COPY store store
COPY collectors collectors
COPY alerts alerts
COPY service service
COPY dashboards dashboards
COPY app app
# The build needs setuptools alone, which is not part of what runs.
RUN /opt/draftgauge/bin/pip install --no-deps .
RUN install -d -m 0700 -o 10001 -g 10001 /var/lib/draftgauge

FROM python:3.11-slim
COPY --from=build /opt/draftgauge /opt/draftgauge
COPY --from=build --chown=10001:10001 /var/lib/draftgauge /var/lib/draftgauge
COPY deploy/draftgauge.yaml /etc/draftgauge/draftgauge.yaml
ENV PATH=/opt/draftgauge/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /var/lib/draftgauge
VOLUME /var/lib/draftgauge
EXPOSE 8400
USER 10001:10001
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8400/healthz', timeout=4)"]
CMD ["draftgauge", "serve", "--config", "/etc/draftgauge/draftgauge.yaml", "--host", "0.0.0.0", "--data-dir", "/var/lib/draftgauge"]
