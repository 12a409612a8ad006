#!/bin/sh
# Calls operations over HTTP, with curl and jq, and prints their results.
set -eu

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# $1 is the path, $2 the data, and $3 the part of the result that jq prints. curl does not fail when the answer is an error of the system.
call() {
  curl --silent --show-error --max-time 10 "${GATEWAY_URL:-http://localhost:3000}/v1/$1" --data-raw "{\"data\":$2}" \
    --header 'content-type: application/json' --header 'x-svc-api-key: demo-key' --header 'x-svc-auth-token: demo-token' > "$answer"
  jq --raw-output "if .error then .error | .status + \": \" + .message else .result | $3 end" "$answer"
}

call users/add '{ "organizationId": "acme", "users": [{ "userId": "ada", "name": "Ada Lovelace" }] }' .message
call users/add '{ "organizationId": "acme", "users": [] }' .message

# From adding a notification to the erasure of the person.
id="$(date +%s)-$$"
# A person for this run alone: an erasure goes on after its answer.
user="reader $id"
call users/add "{ \"organizationId\": \"acme\", \"users\": [{ \"userId\": \"$user\" }] }" empty
call users/get "{ \"organizationId\": \"acme\", \"userIds\": [\"$user\"] }" '.data | length'
call documents/set '{ "organizationId": "acme", "documentId": "call", "access": "organizationPrivate" }' .message
call notifications/add "{
  \"organizationId\": \"acme\",
  \"documentId\": \"call\",
  \"notificationId\": \"$id\",
  \"actionUser\": { \"userId\": \"grace\" },
  \"displayHeadlineMessageTemplate\": \"The plan is ready\",
  \"notifyUsers\": [{ \"userId\": \"$user\" }]
}" empty
call notifications/inbox "{ \"organizationId\": \"acme\", \"userId\": \"$user\", \"pageSize\": 0 }" .unread.count
as_of=$(jq .result.asOf "$answer")
call notifications/update "{ \"organizationId\": \"acme\", \"userId\": \"$user\", \"readUpTo\": $as_of }" empty
call notifications/delete "{ \"organizationId\": \"acme\", \"notificationIds\": [\"$id\"] }" '.data[].message'
call users/delete "{ \"organizationId\": \"acme\", \"userIds\": [\"$user\"] }" '.data[].message'
call users/data/delete "{ \"userIds\": [\"$user\"] }" .message
