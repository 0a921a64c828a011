# Contraflow as one static binary in an image that holds nothing else: no shell, no package
# manager, no user but an unprivileged one.
#
#   docker build -t contraflow .
#   docker run --read-only -p 127.0.0.1:8080:8080 \
#     -v ./gateway.yaml:/etc/contraflow/gateway.yaml:ro -v contraflow-audit:/var/lib/contraflow contraflow
#
# In a container the gateway must listen on 0.0.0.0, and then its configuration needs `auth` and `public_url`;
# deploy/compose.yaml is a complete example.

FROM rust:1.95-alpine AS build
# aws-lc and jemalloc are C; `static` is what Rust makes of musl by default.
RUN apk add --no-cache build-base
# With musl jemalloc has no thread that gives memory back while nothing happens. So that any work does it, there is one
# arena for all threads, and what is free stays for a second only.
ENV JEMALLOC_SYS_WITH_MALLOC_CONF=narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0
WORKDIR /build
# rust-toolchain.toml stays outside: this image brings its toolchain with it.
COPY Cargo.toml Cargo.lock ./
COPY src src
# The caches outlive a build, so a change of the source compiles the source only.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin contraflow \
    && cp target/release/contraflow /contraflow \
    && mkdir /audit

FROM scratch
# Roots of trust for https servers and issuers.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /contraflow /contraflow
# A volume mounted here starts with this owner. Relative audit files land in it.
COPY --from=build --chown=65532:65532 /audit /var/lib/contraflow
WORKDIR /var/lib/contraflow
# There is no /tmp; `docker run --rm contraflow demo --once` wants a folder for its audit log.
ENV TMPDIR=/var/lib/contraflow
USER 65532:65532
EXPOSE 8080
# Asks http://127.0.0.1:8080/healthz; CONTRAFLOW_HEALTH_URL names another address.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/contraflow", "health"]
# On SIGTERM running calls end first (timeouts.shutdown, 20 s): give `docker stop` more than that.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/contraflow"]
CMD ["serve", "--config", "/etc/contraflow/gateway.yaml"]
