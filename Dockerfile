# A server with the models in the folder models/; see docs/service.md. Not built by this project's tests.
FROM python:3.12-slim

RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu

WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir '.[serve]' && useradd --create-home mh4

USER mh4
EXPOSE 8001
HEALTHCHECK CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8001/health')"
ENTRYPOINT ["mh4", "serve", "--host", "0.0.0.0", "--port", "8001"]
CMD ["/models/default"]
