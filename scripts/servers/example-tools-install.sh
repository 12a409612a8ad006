#!/bin/sh
# Installs what the examples in Python and for the shell need, on Debian or Ubuntu, as root. Neither starts a server.
set -eu

export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null; }
apt_get install -y --no-install-recommends python3-pika amqp-tools || {
  echo 'Trying again with fresh package lists.'
  apt_get update
  apt_get install -y --no-install-recommends python3-pika amqp-tools
}
