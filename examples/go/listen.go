// Prints added users, until Ctrl-C.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
)

type event struct {
	ID   string
	Type string
	Data struct {
		OrganizationID string
		Users          []struct{ UserID string }
	}
}

func main() {
	connection, err := amqp.Dial(os.Getenv("BILLING_AMQP_URL"))
	must(err)
	channel, err := connection.Channel()
	must(err)

	// The queue was declared and bound with the account. It keeps 100,000 events while this program is down.
	must(channel.Qos(20, 0, false))
	deliveries, err := channel.Consume("billing.events", "", false, false, false, false, nil)
	must(err)
	fmt.Println("listening")
	for delivery := range deliveries {
		var added event
		must(json.Unmarshal(delivery.Body, &added))
		fmt.Println(added.Type, added.ID, added.Data.OrganizationID, added.Data.Users)
		must(delivery.Ack(false)) // after the work, so that unfinished work is delivered again
	}
	log.Fatal("The connection is lost.")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
