import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** Publishes a command without waiting for its result: exit code 0 means that the broker has it. */
public class Publish {
  static final String NOTIFICATION = """
      {
        "organizationId": "acme",
        "documentId": "plan",
        "notificationId": "java-invoice-7",
        "actionUser": { "userId": "billing" },
        "displayHeadlineMessageTemplate": "Invoice 7 is paid",
        "notifyUsers": [{ "userId": "ada" }]
      }""";

  public static void main(String[] arguments) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(System.getenv("BILLING_AMQP_URL"));
    try (Connection connection = factory.newConnection()) {
      Channel channel = connection.createChannel();
      channel.confirmSelect();
      AtomicBoolean returned = new AtomicBoolean();
      channel.addReturnListener((code, text, exchange, key, properties, body) -> returned.set(true));

      BasicProperties properties =
          new BasicProperties.Builder()
              .deliveryMode(2)
              .contentType("application/json")
              .userId(factory.getUsername()) // your account; the broker checks it
              .headers(Map.of("x-api-key", "demo-key"))
              .build();
      byte[] body = NOTIFICATION.getBytes(StandardCharsets.UTF_8);
      // A repetition with the same notificationId has no second effect.
      channel.basicPublish(System.getenv("COMMANDS_EXCHANGE"), "notifications.add.v1", true, properties, body);
      channel.waitForConfirmsOrDie(10_000);
      // A return comes before its confirm.
      if (returned.get()) throw new IllegalStateException("No queue is bound: the system is not set up.");
      System.out.println("published");
    }
  }
}
