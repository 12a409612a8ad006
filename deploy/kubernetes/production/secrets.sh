#!/bin/sh
# Prints the Secrets of the production overlay, with new passwords: sh secrets.sh [NAMESPACE] | kubectl create -f -
# Run it once. "create" refuses to replace passwords that are in use.
set -eu
namespace=${1:-collaboration}

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# secret NAME TYPE USER KEY START REST: the value of KEY is START, user and password, and REST.
secret() {
  secret=$(password)
  [ ${#secret} -eq 48 ] || { echo 'No password could be made: this needs od and tr.' >&2; exit 1; }
  cat <<END
---
apiVersion: v1
kind: Secret
metadata:
  name: $1
  namespace: $namespace
type: $2
stringData:
  username: $3
  password: $secret
  $4: $5$3:$secret@$6
END
}

for service in gateway users notifications; do
  secret "$service-broker" Opaque "$service" url amqp:// rabbitmq:5672
done
for service in users notifications; do
  secret "$service-database" kubernetes.io/basic-auth "${service}_service" url postgres:// postgres-rw:5432/collaboration
done
# KEDA is in another namespace.
secret scaler-broker Opaque scaler host http:// "rabbitmq.$namespace.svc:15672/"
