"""Publishes a command and does not wait for its outcome: exit code 0 means that the broker has it."""

import json
import os

import pika

parameters = pika.URLParameters(os.environ["BILLING_AMQP_URL"])
connection = pika.BlockingConnection(parameters)
channel = connection.channel()
channel.confirm_delivery()  # basic_publish raises UnroutableError or NackError

notification = {
    "organizationId": "acme",
    "documentId": "plan",
    "notificationId": "python-invoice-7",  # a repetition has no second effect
    "actionUser": {"userId": "billing"},
    "displayHeadlineMessageTemplate": "Invoice 7 is paid",
    "notifyUsers": [{"userId": "ada"}],
}
channel.basic_publish(
    exchange=os.environ.get("COMMANDS_EXCHANGE", "commands"),
    routing_key="notifications.add.v1",
    body=json.dumps(notification).encode(),
    mandatory=True,
    properties=pika.BasicProperties(
        delivery_mode=2,
        content_type="application/json",
        user_id=parameters.credentials.username,  # your account; the broker checks it
        headers={"x-api-key": "demo-key"},
    ),
)
print("published")
connection.close()
