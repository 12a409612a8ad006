#!/bin/sh
# Prints the next event. The queue goes with the program: for a look, not for a service.
set -eu

exec amqp-consume --url "$BILLING_AMQP_URL" --exclusive --queue billing.look --exchange events --routing-key user.added.v1 --count 1 cat
