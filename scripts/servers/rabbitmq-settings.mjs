/** Of application `rabbit`, for the brokers that are started here. deploy/compose has the same; one of an operator's own should. */
export const BROKER_SETTINGS = {
  // Bytes. The largest of ours are pages of 4 MiB; RabbitMQ 3.10 takes 128 MiB by itself.
  max_message_size: 16 * 1024 * 1024,
  // Milliseconds until the broker tries again to put away what it could not: 180,000 by itself.
  dead_letter_worker_publisher_confirm_timeout: 5000,
};
