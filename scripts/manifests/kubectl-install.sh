#!/bin/sh
# Installs kubectl on Debian or Ubuntu, as root. It starts no server.
set -eu

export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null; }
apt_get install -y --no-install-recommends kubernetes-client || {
  echo 'Trying again with fresh package lists.'
  apt_get update
  apt_get install -y --no-install-recommends kubernetes-client
}
