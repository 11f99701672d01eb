# Two images, from scratch, without a shell, that run as the user 65532 on a read-only root:
#
#   docker build --target service -t signalbox .
#   docker build --target agent -t signalbox-agent .
#
# BuildKit (Docker's own since 23) or Podman: both build only the stages that a target needs.

# Both of Debian 12, whose C library the programs then need: on a host that installs the agent it has to be 2.34 or newer
# (Debian 12, Ubuntu 22.04, RHEL 9). Agents for others: see docs/guides/agents.md.
ARG RUST_IMAGE=docker.io/library/rust:1.95.0-bookworm
ARG NODE_IMAGE=docker.io/library/node:22-bookworm
# The stage, or an image, that has /image as packaging/image-root makes it.
ARG PROGRAMS=build

FROM ${NODE_IMAGE} AS node

FROM ${RUST_IMAGE} AS build
# The image brings this version; rust-toolchain.toml asks for tools besides that nothing needs here.
ENV RUSTUP_TOOLCHAIN=1.95.0
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist -p signalbox --features signalbox/jemalloc && cargo build --locked --profile agent -p signalbox-agent \
    && cp target/agent/signalbox-agent target/dist/ && packaging/image-root target/dist /image

# An image that has them is one of the machine that builds, also where it holds programs for another processor (scripts/dist).
# hadolint ignore=DL3006,DL3029
FROM --platform=$BUILDPLATFORM ${PROGRAMS} AS programs

FROM scratch AS agent
COPY --from=programs /image/agent /
USER 65532:65532
VOLUME /var/lib/signalbox-agent
ENV SIGNALBOX_AGENT_STATE_DIR=/var/lib/signalbox-agent
ENTRYPOINT ["/usr/bin/signalbox-agent"]

FROM scratch AS service
COPY --from=programs /image/service /
USER 65532:65532
VOLUME /var/lib/signalbox
EXPOSE 8000
# SQLITE_TMPDIR: a large transaction of SQLite needs a temporary file, and nothing else is writable.
ENV SIGNALBOX_LISTEN=0.0.0.0:8000 \
    SIGNALBOX_DATA_DIR=/var/lib/signalbox \
    SQLITE_TMPDIR=/var/lib/signalbox \
    SIGNALBOX_INSTALL_DIR=/usr/share/signalbox/agents
# Whether the process is up. Whether it can serve is asked with --ready, which is for load balancers: a database that is
# away is no reason to restart. (Podman keeps this with --format docker.)
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["/usr/bin/signalbox", "health"]
# The service ends by SIGTERM, which is what engines send; give it 30 s for that (docker stop waits for 10).
ENTRYPOINT ["/usr/bin/signalbox"]
