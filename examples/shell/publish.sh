#!/bin/sh
# Publishes a command. amqp-publish can set no user_id, so it works only for API keys that are granted to all, as demo-key is. It does not
# wait for a confirm either. It suits scripts in which a lost notification does no harm.
set -eu

amqp-publish --url "$BILLING_AMQP_URL" --exchange "${COMMANDS_EXCHANGE:-commands}" --routing-key notifications.add.v1 --persistent \
  --content-type application/json --header 'x-api-key: demo-key' \
  --body '{
    "organizationId": "acme",
    "documentId": "plan",
    "notificationId": "shell-build-7",
    "actionUser": { "userId": "ci" },
    "displayHeadlineMessageTemplate": "Build 7 is done"
  }'

# A value that is set again changes nothing, so this one may be repeated.
amqp-publish --url "$BILLING_AMQP_URL" --exchange "${COMMANDS_EXCHANGE:-commands}" --routing-key documents.set.v1 --persistent \
  --content-type application/json --header 'x-api-key: demo-key' \
  --body '{ "organizationId": "acme", "documentId": "shell", "access": "restricted" }'
echo published
