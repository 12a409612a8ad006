// Publishes a command without waiting for its result: exit code 0 means that the broker has it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const timeout = 10 * time.Second

const notification = `{
  "organizationId": "acme",
  "documentId": "plan",
  "notificationId": "go-invoice-7",
  "actionUser": { "userId": "billing" },
  "displayHeadlineMessageTemplate": "Invoice 7 is paid",
  "notifyUsers": [{ "userId": "ada" }]
}`

func main() {
	url := os.Getenv("BILLING_AMQP_URL")
	account, err := amqp.ParseURI(url)
	must(err)
	connection, err := amqp.Dial(url)
	must(err)
	defer connection.Close()
	channel, err := connection.Channel()
	must(err)
	must(channel.Confirm(false))
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	// Before 1.8 the library can lose a deferred confirmation (rabbitmq/amqp091-go#182).
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 1))

	// A repetition with the same notificationId has no second effect.
	must(channel.PublishWithContext(context.Background(),
		os.Getenv("COMMANDS_EXCHANGE"), "notifications.add.v1", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent,
			ContentType:  "application/json",
			UserId:       account.Username, // your account; the broker checks it
			Headers:      amqp.Table{"x-api-key": "demo-key"},
			Body:         []byte(notification),
		}))
	select {
	case confirm, open := <-confirms:
		if !open {
			log.Fatal("The channel is closed: ", <-closed) // the broker's reason, such as a missing right
		}
		select {
		case <-returned: // comes before its confirm
			log.Fatal("No queue is bound: the system is not set up.")
		default:
		}
		if !confirm.Ack {
			log.Fatal("The queue is full: repeat it later.")
		}
	case <-time.After(timeout):
		log.Fatal("The broker has not confirmed it: repeat it later.")
	}
	fmt.Println("published")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
