"""Calls an operation and waits for the reply, in a queue of its own."""

import json
import os
import time
import uuid

import pika

TIMEOUT_S = 5
parameters = pika.URLParameters(os.environ["BILLING_AMQP_URL"])
connection = pika.BlockingConnection(parameters)
channel = connection.channel()
channel.confirm_delivery()

# The broker names the queue, and deletes it with the connection.
queue = channel.queue_declare("", exclusive=True, auto_delete=True).method.queue
channel.queue_bind(queue, "replies", queue)
replies = {}
channel.basic_consume(
    queue, lambda _, __, properties, body: replies.update({properties.correlation_id: (properties, body)}), auto_ack=True
)


def call(operation, body):
    correlation_id = str(uuid.uuid4())
    replies.clear()  # late ones of calls that were given up
    channel.basic_publish(
        exchange=os.environ.get("COMMANDS_EXCHANGE", "commands"),
        routing_key=operation,
        body=json.dumps(body).encode(),
        mandatory=True,
        properties=pika.BasicProperties(
            delivery_mode=2,
            content_type="application/json",
            message_id=str(uuid.uuid4()),  # use the same id when you repeat the call
            correlation_id=correlation_id,
            reply_to=queue,
            expiration=str(TIMEOUT_S * 1000),
            user_id=parameters.credentials.username,
            headers={"x-api-key": "demo-key", "x-deadline": int((time.time() + TIMEOUT_S) * 1000)},
        ),
    )
    until = time.monotonic() + TIMEOUT_S
    while correlation_id not in replies:
        if time.monotonic() > until:
            raise TimeoutError("DEADLINE_EXCEEDED: the outcome is unknown")
        connection.process_data_events(time_limit=max(0, until - time.monotonic()))
    properties, content = replies.pop(correlation_id)
    result = json.loads(content)
    if properties.headers["x-status"] != "OK":
        raise RuntimeError(f"{result['status']}: {result['message']}")
    return result


print(call("users.add.v1", {"organizationId": "acme", "users": [{"userId": "ada", "name": "Ada Lovelace"}]})["message"])
try:
    call("users.add.v1", {"organizationId": "acme", "users": []})
except RuntimeError as error:
    print(error)

# From adding a notification to the erasure of the person.
acme = {"organizationId": "acme"}
notification_id = str(uuid.uuid4())
# A person for this run alone: an erasure goes on after its answer.
user_id = f"reader {notification_id}"
call("users.add.v1", {**acme, "users": [{"userId": user_id}]})
print(len(call("users.get.v1", {**acme, "userIds": [user_id]})["data"]))
print(call("documents.set.v1", {**acme, "documentId": "call", "access": "organizationPrivate"})["message"])
call(
    "notifications.add.v1",
    {
        **acme,
        "documentId": "call",
        "notificationId": notification_id,
        "actionUser": {"userId": "grace"},
        "displayHeadlineMessageTemplate": "The plan is ready",
        "notifyUsers": [{"userId": user_id}],
    },
)
inbox = call("notifications.inbox.v1", {**acme, "userId": user_id, "pageSize": 0})
print(inbox["unread"]["count"])
call("notifications.update.v1", {**acme, "userId": user_id, "readUpTo": inbox["asOf"]})
deleted = call("notifications.delete.v1", {**acme, "notificationIds": [notification_id]})
print(deleted["data"][notification_id]["message"])
print(call("users.delete.v1", {**acme, "userIds": [user_id]})["data"][user_id]["message"])
print(call("users.erase.v1", {"userIds": [user_id]})["message"])
connection.close()
