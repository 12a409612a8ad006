#!/bin/sh
# Prints the Secrets of the production overlay, with new passwords: sh secrets.sh [NAMESPACE [SECRET ...]] | kubectl create -f -
# Run it once for all of them: "create" refuses to replace passwords that are in use. docs/kubernetes.md has the change of single ones.
set -eu
namespace=${1:-collaboration}
[ $# -eq 0 ] || shift
chosen="$*"
all='gateway-broker users-broker notifications-broker users-database notifications-database scaler-broker'
for name in $chosen; do
  case " $all " in *" $name "*) ;; *) echo "There is no Secret $name; there are: $(echo $all | sed 's/ /, /g')." >&2; exit 2 ;; esac
done

# Each broker by its own name: so a process knows where its connections are, and which broker to try next.
brokers=rabbitmq-server-0.rabbitmq-nodes:5672,rabbitmq-server-1.rabbitmq-nodes:5672,rabbitmq-server-2.rabbitmq-nodes:5672
# The Messaging Topology Operator refuses a Secret without it. CloudNativePG notices a new password late without it.
for_rabbitmq=rabbitmq.com/topology-operator
for_postgres=cnpg.io/reload

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# secret NAME TYPE LABEL USER KEY START REST: the value of KEY is START, user and password, and REST.
secret() {
  case " $chosen " in "  " | *" $1 "*) ;; *) return 0 ;; esac
  secret=$(password)
  [ ${#secret} -eq 48 ] || { echo 'No password could be made: this needs od and tr.' >&2; exit 1; }
  cat <<END
---
apiVersion: v1
kind: Secret
metadata:
  name: $1
  namespace: $namespace
  labels:
    $3: 'true'
type: $2
stringData:
  username: $4
  password: $secret
  $5: $6$4:$secret@$7
END
}

for service in gateway users notifications; do
  secret "$service-broker" Opaque "$for_rabbitmq" "$service" url amqp:// "$brokers"
done
for service in users notifications; do
  secret "$service-database" kubernetes.io/basic-auth "$for_postgres" "${service}_service" url postgres:// postgres-rw:5432/collaboration
done
# KEDA is in another namespace.
secret scaler-broker Opaque "$for_rabbitmq" scaler host http:// "rabbitmq.$namespace.svc:15672/"
