import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DeliverCallback;

/** Prints added users, until Ctrl-C. The library connects again by itself. */
public class Listen {
  static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(System.getenv("BILLING_AMQP_URL"));
    Channel channel = factory.newConnection().createChannel();

    // The queue was declared and bound with the account. It keeps 100,000 events while this program is down.
    channel.basicQos(20);
    DeliverCallback onEvent =
        (tag, delivery) -> {
          try {
            JsonNode event = JSON.readTree(delivery.getBody());
            System.out.println(event.at("/type").asText() + " " + event.at("/id").asText() + " " + event.at("/data"));
            // After the work, so that unfinished work is delivered again.
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
          } catch (Exception error) {
            // The library would log it and go on: after 20 such events nothing more would come.
            error.printStackTrace();
            System.exit(1);
          }
        };
    channel.basicConsume("billing.events", false, onEvent, tag -> System.exit(1));
    System.out.println("listening");
  }
}
