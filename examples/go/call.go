// Calls operations and waits for each reply, in a queue of its own.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const timeout = 5 * time.Second

type object = map[string]any

type caller struct {
	channel  *amqp.Channel
	replies  <-chan amqp.Delivery
	returned <-chan amqp.Return
	closed   <-chan *amqp.Error
	queue    string
	account  string
}

func main() {
	url := os.Getenv("BILLING_AMQP_URL")
	account, err := amqp.ParseURI(url)
	must(err)
	connection, err := amqp.Dial(url)
	must(err)
	defer connection.Close()
	channel, err := connection.Channel()
	must(err)

	// The broker names the queue and deletes it with the connection.
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	must(err)
	must(channel.QueueBind(queue.Name, queue.Name, "replies", false, nil))
	replies, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	must(err)
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	calls := caller{channel, replies, returned, closed, queue.Name, account.Username}

	var done struct{ Message string }
	must(calls.call("users.add.v1", object{"organizationId": "acme", "users": []object{{"userId": "ada", "name": "Ada Lovelace"}}}, &done))
	fmt.Println(done.Message)
	fmt.Println(calls.call("users.add.v1", object{"organizationId": "acme", "users": []object{}}, &done))

	// From adding a notification to the erasure of the person.
	id := newID()
	// A person for this run alone: an erasure goes on after its answer.
	userID := "reader " + id
	must(calls.call("users.add.v1", object{"organizationId": "acme", "users": []object{{"userId": userID}}}, &done))
	var found struct {
		Data []struct{ UserID, Name string }
	}
	must(calls.call("users.get.v1", object{"organizationId": "acme", "userIds": []string{userID}}, &found))
	fmt.Println(len(found.Data))
	document := object{"organizationId": "acme", "documentId": "call", "access": "organizationPrivate"}
	must(calls.call("documents.set.v1", document, &done))
	fmt.Println(done.Message)
	must(calls.call("notifications.add.v1", object{
		"organizationId":                 "acme",
		"documentId":                     "call",
		"notificationId":                 id,
		"actionUser":                     object{"userId": "grace"},
		"displayHeadlineMessageTemplate": "The plan is ready",
		"notifyUsers":                    []object{{"userId": userID}},
	}, &done))
	var inbox struct {
		AsOf   int64
		Unread struct{ Count int }
	}
	must(calls.call("notifications.inbox.v1", object{"organizationId": "acme", "userId": userID, "pageSize": 0}, &inbox))
	fmt.Println(inbox.Unread.Count)
	must(calls.call("notifications.update.v1", object{"organizationId": "acme", "userId": userID, "readUpTo": inbox.AsOf}, &done))
	var each struct {
		Data map[string]struct{ Message string }
	}
	must(calls.call("notifications.delete.v1", object{"organizationId": "acme", "notificationIds": []string{id}}, &each))
	fmt.Println(each.Data[id].Message)
	must(calls.call("users.delete.v1", object{"organizationId": "acme", "userIds": []string{userID}}, &each))
	fmt.Println(each.Data[userID].Message)
	must(calls.call("users.erase.v1", object{"userIds": []string{userID}}, &done))
	fmt.Println(done.Message)
}

// Waits for the result. One call at a time.
func (c caller) call(operation string, body object, result any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	correlationID := newID()
	err = c.channel.PublishWithContext(context.Background(), os.Getenv("COMMANDS_EXCHANGE"), operation, true, false, amqp.Publishing{
		DeliveryMode:  amqp.Persistent,
		ContentType:   "application/json",
		MessageId:     newID(), // use the same id when you repeat the call
		CorrelationId: correlationID,
		ReplyTo:       c.queue,
		Expiration:    fmt.Sprint(timeout.Milliseconds()),
		UserId:        c.account, // your account; the broker checks it
		Headers:       amqp.Table{"x-api-key": "demo-key", "x-deadline": deadline.UnixMilli()},
		Body:          content,
	})
	if err != nil {
		return err
	}
	for {
		select {
		case reply, open := <-c.replies:
			if !open {
				return fmt.Errorf("the channel is closed, and the outcome is unknown: %v", <-c.closed)
			}
			if reply.CorrelationId != correlationID {
				continue // of a call that was given up
			}
			if reply.Headers["x-status"] == "OK" {
				return json.Unmarshal(reply.Body, result)
			}
			var refused struct{ Status, Message string }
			if err := json.Unmarshal(reply.Body, &refused); err != nil {
				return err
			}
			return fmt.Errorf("%s: %s", refused.Status, refused.Message)
		case back := <-c.returned:
			if back.CorrelationId == correlationID {
				return errors.New("UNAVAILABLE: no queue is bound, and nothing was done")
			}
		case <-time.After(time.Until(deadline)):
			return errors.New("DEADLINE_EXCEEDED: the outcome is unknown")
		}
	}
}

func newID() string {
	id := make([]byte, 16)
	_, err := rand.Read(id)
	must(err)
	return fmt.Sprintf("%x", id)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
