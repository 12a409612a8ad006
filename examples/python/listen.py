"""Prints the users that are added, until Ctrl-C."""

import json
import os

import pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["BILLING_AMQP_URL"]))
channel = connection.channel()

# Durable, so that nothing is missed while this program is down. Full, it drops its oldest: one that refused would hold up everybody.
queue = "billing.python"
channel.queue_declare(
    queue, durable=True, arguments={"x-queue-type": "quorum", "x-max-length": 100_000, "x-overflow": "drop-head"}
)
channel.queue_bind(queue, "events", "user.added.v1")
channel.basic_qos(prefetch_count=20)


def on_event(channel, method, _, body):
    event = json.loads(body)
    users = ",".join(user["userId"] for user in event["data"]["users"])
    print(event["type"], event["id"], event["data"]["organizationId"], users, flush=True)
    channel.basic_ack(method.delivery_tag)  # after the work, so that it comes again when the work was not done


channel.basic_consume(queue, on_event)
print("listening", flush=True)
channel.start_consuming()
