"""Prints the users that are added, until Ctrl-C."""

import json
import os

import pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["BILLING_AMQP_URL"]))
channel = connection.channel()

# Declared and bound when the account was made. It keeps what is told while this program is down: 100,000 events, then the oldest go.
channel.basic_qos(prefetch_count=20)


def on_event(channel, method, _, body):
    event = json.loads(body)
    users = ",".join(user["userId"] for user in event["data"]["users"])
    print(event["type"], event["id"], event["data"]["organizationId"], users, flush=True)
    channel.basic_ack(method.delivery_tag)  # after the work, so that it comes again when the work was not done


channel.basic_consume("billing.events", on_event)
print("listening", flush=True)
channel.start_consuming()
