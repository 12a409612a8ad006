#!/bin/sh
# Prints the next event and removes it from the queue. Use it for a look, not beside a service.
set -eu

exec amqp-consume --url "$BILLING_AMQP_URL" --queue billing.events --count 1 cat
