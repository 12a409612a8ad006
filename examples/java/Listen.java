import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DeliverCallback;
import java.nio.charset.StandardCharsets;

/** Prints events about added users, until Ctrl-C. */
public class Listen {
  public static void main(String[] arguments) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(System.getenv("BILLING_AMQP_URL"));
    Channel channel = factory.newConnection().createChannel();

    // The queue was declared and bound with the account. It keeps 100,000 events while this program is down.
    channel.basicQos(20);
    DeliverCallback onEvent =
        (tag, delivery) -> {
          System.out.println(new String(delivery.getBody(), StandardCharsets.UTF_8)); // a CloudEvent as JSON
          // After the work, so that unfinished work is delivered again.
          channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        };
    channel.basicConsume("billing.events", false, onEvent, tag -> System.exit(1));
    System.out.println("listening");
  }
}
