// Publishes a command without waiting for its result: exit code 0 means that the broker has it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
)

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

	// A repetition with the same notificationId has no second effect.
	confirm, err := channel.PublishWithDeferredConfirmWithContext(context.Background(),
		os.Getenv("COMMANDS_EXCHANGE"), "notifications.add.v1", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent,
			ContentType:  "application/json",
			UserId:       account.Username, // your account; the broker checks it
			Headers:      amqp.Table{"x-api-key": "demo-key"},
			Body:         []byte(notification),
		})
	must(err)
	acknowledged := confirm.Wait()
	select {
	case <-returned: // comes before its confirm
		log.Fatal("No queue is bound: the system is not set up.")
	default:
	}
	if !acknowledged {
		log.Fatal("The queue is full: repeat it later.")
	}
	fmt.Println("published")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
