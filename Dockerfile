# One image for every process: the command chooses which. Debian rather than Alpine, because Node's builds for musl are experimental and
# the tests run on glibc.
ARG NODE_IMAGE=node:24.19-trixie-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json nest-cli.json .swcrc ./
COPY apps apps
COPY libs libs
COPY scripts/build.mjs scripts/
COPY scripts/processes scripts/processes
COPY scripts/checkout scripts/checkout
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Optional as well: it is the TypeScript compiler, a peer that only a build plugin of Nest wants.
# Without the maps of packages, which --enable-source-maps would read at each start. The maps of our own code stay.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
    && find node_modules -name '*.map' -delete

# The system and Node, without the package managers: nothing in a container installs packages.
FROM ${NODE_IMAGE} AS system
RUN rm -rf /usr/local/lib/node_modules /usr/local/include /opt/yarn* \
    && cd /usr/local/bin && rm -f npm npx corepack yarn yarnpkg

# From nothing, because a layer that deletes files keeps their size.
FROM scratch
COPY --from=system / /
# `npm run release -- build` prints the values. Empty in an image that is no release.
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="collaboration-backend" \
      org.opencontainers.image.description="Users and notifications for a collaboration backend: gateway, two services, set-up" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
# The port of health and metrics is fixed here: every container has its own, so replicas do not meet. Both ports listen on every address
# of the container (HOST, HEALTH_HOST). The start of the container decides which of them can be reached.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_ENV=production HEALTH_PORT=9090
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /app/node_modules node_modules
COPY scripts/setup.mjs scripts/tool.mjs scripts/healthcheck.mjs scripts/
COPY scripts/processes scripts/processes
COPY scripts/checkout scripts/checkout
COPY openapi.json asyncapi.json ./
COPY docs/messages.html docs/
COPY apps/operator/public apps/operator/public
COPY --from=build /app/dist dist
# Everything above belongs to root: the process cannot change its own code. Any other user works as well. A number, because Kubernetes
# cannot tell whether a name is root.
USER 1000:1000
EXPOSE 3000 9090
STOPSIGNAL SIGTERM
# Others: dist/users.js, dist/notifications.js, dist/operator.js, scripts/setup.mjs (migrations and queues, then exits), scripts/tool.mjs
# (tools of operators).
CMD ["node", "--enable-source-maps", "--no-allocation-site-pretenuring", "--max-semi-space-size=16", "--heap-growing-percent=100", \
     "dist/gateway.js"]
