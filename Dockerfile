# docker build -t leastnoise . && docker run --rm leastnoise            the demonstration; `make test` after the name runs the tests
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /leastnoise
COPY . .
RUN make env
CMD ["make", "demo"]
