#!/bin/sh
# Installs Chromium on Debian, as root.
set -eu

export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null; }
apt_get install -y --no-install-recommends chromium || {
  echo 'Trying again with fresh package lists.'
  apt_get update
  apt_get install -y --no-install-recommends chromium
}
