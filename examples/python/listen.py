"""Prints added users, until Ctrl-C."""

import json
import os

import pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["BILLING_AMQP_URL"]))
channel = connection.channel()

# The queue was declared and bound with the account. It keeps 100,000 events while this program is down, then it drops the oldest.
channel.basic_qos(prefetch_count=20)


# pika sends no heartbeats while this runs: work that takes a minute belongs in a thread, or the broker ends the connection.
def on_event(channel, method, _, body):
    event = json.loads(body)
    users = ",".join(user["userId"] for user in event["data"]["users"])
    print(event["type"], event["id"], event["data"]["organizationId"], users, flush=True)
    channel.basic_ack(method.delivery_tag)  # after the work: an event whose work was not done comes again


channel.basic_consume("billing.events", on_event)
print("listening", flush=True)
channel.start_consuming()
raise SystemExit("The queue was deleted.")
