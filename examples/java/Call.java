import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Calls operations and waits for each reply, in a queue of its own. */
public class Call {
  static final long TIMEOUT_MS = 5_000;
  static final ObjectMapper JSON = new ObjectMapper();

  final BlockingQueue<Delivery> replies = new LinkedBlockingQueue<>();
  final Channel channel;
  final String queue;
  final String account;

  Call(Connection connection, String account) throws Exception {
    this.account = account;
    channel = connection.createChannel();
    // The broker names the queue and deletes it with the connection.
    queue = channel.queueDeclare("", false, true, true, null).getQueue();
    channel.queueBind(queue, "replies", queue);
    channel.basicConsume(queue, true, (tag, reply) -> replies.add(reply), tag -> {});
    channel.addReturnListener(returned -> replies.add(new Delivery(null, returned.getProperties(), null)));
  }

  public static void main(String[] arguments) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(System.getenv("BILLING_AMQP_URL"));
    try (Connection connection = factory.newConnection()) {
      new Call(connection, factory.getUsername()).run();
    }
  }

  void run() throws Exception {
    Map<String, String> ada = Map.of("userId", "ada", "name", "Ada Lovelace");
    print(call("users.add.v1", Map.of("organizationId", "acme", "users", List.of(ada))).at("/message"));
    try {
      call("users.add.v1", Map.of("organizationId", "acme", "users", List.of()));
    } catch (IllegalArgumentException error) {
      System.out.println(error.getMessage());
    }

    // From adding a notification to the erasure of the person.
    String id = UUID.randomUUID().toString();
    // A person for this run alone: an erasure goes on after its answer.
    String userId = "reader " + id;
    Map<String, String> reader = Map.of("userId", userId);
    call("users.add.v1", Map.of("organizationId", "acme", "users", List.of(reader)));
    JsonNode found = call("users.get.v1", Map.of("organizationId", "acme", "userIds", List.of(userId)));
    System.out.println(found.at("/data").size());
    Map<String, String> document =
        Map.of("organizationId", "acme", "documentId", "call", "access", "organizationPrivate");
    print(call("documents.set.v1", document).at("/message"));
    call(
        "notifications.add.v1",
        Map.of(
            "organizationId", "acme",
            "documentId", "call",
            "notificationId", id,
            "actionUser", Map.of("userId", "grace"),
            "displayHeadlineMessageTemplate", "The plan is ready",
            "notifyUsers", List.of(reader)));
    JsonNode inbox =
        call("notifications.inbox.v1", Map.of("organizationId", "acme", "userId", userId, "pageSize", 0));
    print(inbox.at("/unread/count"));
    long asOf = inbox.at("/asOf").asLong();
    call("notifications.update.v1", Map.of("organizationId", "acme", "userId", userId, "readUpTo", asOf));
    JsonNode deleted =
        call("notifications.delete.v1", Map.of("organizationId", "acme", "notificationIds", List.of(id)));
    print(deleted.at("/data/" + id + "/message"));
    JsonNode removed = call("users.delete.v1", Map.of("organizationId", "acme", "userIds", List.of(userId)));
    print(removed.at("/data/" + userId + "/message"));
    print(call("users.erase.v1", Map.of("userIds", List.of(userId))).at("/message"));
  }

  /** Waits for the result. One call at a time. */
  JsonNode call(String operation, Object body) throws Exception {
    long deadline = System.currentTimeMillis() + TIMEOUT_MS;
    String correlationId = UUID.randomUUID().toString();
    BasicProperties properties =
        new BasicProperties.Builder()
            .deliveryMode(2)
            .contentType("application/json")
            .messageId(UUID.randomUUID().toString()) // use the same id when you repeat the call
            .correlationId(correlationId)
            .replyTo(queue)
            .expiration(String.valueOf(TIMEOUT_MS))
            .userId(account) // your account; the broker checks it
            .headers(Map.of("x-api-key", "demo-key", "x-deadline", deadline))
            .build();
    channel.basicPublish(System.getenv("COMMANDS_EXCHANGE"), operation, true, properties, JSON.writeValueAsBytes(body));
    while (true) {
      Delivery reply = replies.poll(deadline - System.currentTimeMillis(), TimeUnit.MILLISECONDS);
      // The broker closes the channel when the account lacks a right.
      if (reply == null && !channel.isOpen()) throw channel.getCloseReason();
      if (reply == null) throw new TimeoutException("DEADLINE_EXCEEDED: the outcome is unknown");
      // Another id is of a call that was given up.
      if (!correlationId.equals(reply.getProperties().getCorrelationId())) continue;
      if (reply.getBody() == null) throw new IllegalStateException("UNAVAILABLE: no queue is bound, and nothing was done");
      JsonNode result = JSON.readTree(reply.getBody());
      if ("OK".equals(String.valueOf(reply.getProperties().getHeaders().get("x-status")))) return result;
      throw new IllegalArgumentException(result.at("/status").asText() + ": " + result.at("/message").asText());
    }
  }

  static void print(JsonNode value) {
    System.out.println(value.asText());
  }
}
