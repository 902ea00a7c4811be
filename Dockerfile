# The image of ll-loop: the static program and what shell loops commonly call.
#
#   docker build .                               builds the program from source
#   docker build --build-arg BINARY=prebuilt .   takes dist/<amd64|arm64>/ll-loop, so that the image of
#                                                a release holds the very program that was released
#
# Only the stage that BINARY names is built. Needs BuildKit, the default of Docker since version 23.

ARG BINARY=build
ARG RUST_IMAGE=rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2
ARG BASE_IMAGE=debian:trixie-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f

# Alpine's Rust targets musl, and links statically without being asked.
FROM ${RUST_IMAGE} AS build
# hadolint ignore=DL3018
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked && mv target/dist/ll-loop /ll-loop

FROM scratch AS prebuilt
ARG TARGETARCH
COPY dist/${TARGETARCH}/ll-loop /ll-loop

# hadolint ignore=DL3006
FROM ${BINARY} AS binary

FROM ${BASE_IMAGE}
# Versions are those of the Debian release that the digest above belongs to, with its security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bash bubblewrap ca-certificates coreutils curl git jq \
  && rm -rf /var/lib/apt/lists/*
COPY --from=binary /ll-loop /usr/local/bin/ll-loop

# Where the runner mounts the workspace. `docker run -v "$PWD:/github/workspace" IMAGE run NAME` works alike.
WORKDIR /github/workspace

LABEL org.opencontainers.image.title="ll-loop" \
      org.opencontainers.image.description="Runs YAML finite-state-machine loops in CI" \
      org.opencontainers.image.source="https://github.com/little-loops/ll-loop" \
      org.opencontainers.image.documentation="https://github.com/little-loops/ll-loop#readme" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"

# No USER: the runner starts a container action as root in a workspace that belongs to another user.
# ll-loop then runs as the owner of the working directory, and as whoever it is started as otherwise.
# No init: as process 1, ll-loop forwards signals and reaps what its children leave behind.
# No HEALTHCHECK: it runs a loop and ends.
ENTRYPOINT ["ll-loop"]
