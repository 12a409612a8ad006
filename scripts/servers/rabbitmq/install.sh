#!/bin/sh
# Installs RabbitMQ on Debian or Ubuntu, as root, without leaving a system-wide server behind: the package would
# start one on port 5672 and enable it at boot. A service that was already installed keeps the state it had.
set -eu

units='rabbitmq-server.service epmd.service epmd.socket'
guard=/usr/sbin/policy-rc.d
new_units=''
for unit in $units; do
  [ -e "/lib/systemd/system/$unit" ] || [ -e "/usr/lib/systemd/system/$unit" ] || new_units="$new_units $unit"
done

# policy-rc.d is how Debian asks whether a package may start its service; 101 means no.
if [ ! -e "$guard" ]; then
  trap 'rm -f "$guard"' EXIT
  printf '#!/bin/sh\n# Put here while RabbitMQ is being installed; safe to delete afterwards.\nexit 101\n' > "$guard"
  chmod 755 "$guard"
fi

sh "$(dirname "$0")/../../programs/apt-install.sh" rabbitmq-server

for unit in $new_units; do
  if command -v systemctl > /dev/null; then
    systemctl disable "$unit" || true
    [ ! -d /run/systemd/system ] || systemctl stop "$unit" || true
  fi
  case "$unit" in
    rabbitmq-server.service) if command -v update-rc.d > /dev/null; then update-rc.d rabbitmq-server disable || true; fi ;;
  esac
done
