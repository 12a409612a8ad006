#!/bin/sh
# Installs Prometheus on Debian or Ubuntu, as root, without leaving a system-wide server behind: the package would start one on port 9090
# and enable it at boot. A service that was already installed keeps the state it had.
set -eu

guard=/usr/sbin/policy-rc.d
new=true
[ ! -e /lib/systemd/system/prometheus.service ] && [ ! -e /usr/lib/systemd/system/prometheus.service ] || new=false

# policy-rc.d is how Debian asks whether a package may start its service; 101 means no.
if [ ! -e "$guard" ]; then
  trap 'rm -f "$guard"' EXIT
  printf '#!/bin/sh\n# Put here while Prometheus is being installed; safe to delete afterwards.\nexit 101\n' > "$guard"
  chmod 755 "$guard"
fi

sh "$(dirname "$0")/../programs/apt-install.sh" prometheus

if $new && command -v systemctl > /dev/null; then
  systemctl disable prometheus.service || true
  [ ! -d /run/systemd/system ] || systemctl stop prometheus.service || true
fi
