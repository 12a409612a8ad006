#!/bin/sh
# Installs packages on Debian or Ubuntu, as root: apt-install.sh PACKAGE...
set -eu

export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null; }
apt_get install -y --no-install-recommends "$@" || {
  echo 'Trying again with fresh package lists.'
  apt_get update
  apt_get install -y --no-install-recommends "$@"
}
