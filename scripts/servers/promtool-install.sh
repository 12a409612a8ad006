#!/bin/sh
# Installs promtool on Debian or Ubuntu, as root: the package prometheus, without leaving a running server behind.
set -eu

guard=/usr/sbin/policy-rc.d
had_unit=no
[ ! -e /lib/systemd/system/prometheus.service ] || had_unit=yes

# policy-rc.d is how Debian asks whether a package may start its service; 101 means no.
if [ ! -e "$guard" ]; then
  trap 'rm -f "$guard"' EXIT
  printf '#!/bin/sh\n# Put here while prometheus is being installed; safe to delete afterwards.\nexit 101\n' > "$guard"
  chmod 755 "$guard"
fi

export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" < /dev/null; }
apt_get install -y --no-install-recommends prometheus || {
  echo 'Trying again with fresh package lists.'
  apt_get update
  apt_get install -y --no-install-recommends prometheus
}

if [ "$had_unit" = no ] && command -v systemctl > /dev/null; then
  systemctl disable prometheus.service || true
  [ ! -d /run/systemd/system ] || systemctl stop prometheus.service || true
fi
