/** By application. Brokers that are started here have them, deploy/compose has the same, and one of an operator's own should. */
export const BROKER_SETTINGS = {
  rabbit: {
    // Bytes. The largest messages of this system are pages of 4 MiB; RabbitMQ 3.10 takes 128 MiB by default.
    max_message_size: 5 * 1024 * 1024,
    // Processes of the broker that wait keep the bodies that went through them. It collects them within 1 % of the time; by default it never does.
    background_gc_enabled: true,
    background_gc_target_interval: 1000,
    // Messages of one connection that the broker takes before it has written them to the log that all quorum queues share. Calls wait behind their
    // bytes, whatever their size: 400 by default, which may be 400 MiB.
    credit_flow_default_credit: '{16, 8}',
    // Milliseconds until the broker tries again to dead-letter a message that its target did not take: 180,000 by default.
    dead_letter_worker_publisher_confirm_timeout: 5000,
  },
  ra: {
    // Bytes. Quorum queues keep in memory what is in the current file of their log: 512 MiB by default, close to the memory limit of the node.
    wal_max_size_bytes: 64 * 1024 * 1024,
  },
};

/** The same for the nodes of a cluster. */
export const CLUSTER_SETTINGS = {
  aten: {
    // Milliseconds between two looks at the heartbeats of the other nodes. RabbitMQ's 5,000 leave a queue without a leader for up to 10 s when the
    // node of its leader stands still.
    poll_interval: 1000,
  },
};

/**
 * Lines of rabbitmq.conf for a broker that takes only TLS, and only from clients with a certificate.
 * @param {string} address to listen on
 * @param {number} port
 * @param {number} managementPort
 * @param {string} directory with ca.pem, cert.pem and key.pem
 */
export function tlsConfiguration(address, port, managementPort, directory) {
  const options = {
    cacertfile: `${directory}/ca.pem`,
    certfile: `${directory}/cert.pem`,
    keyfile: `${directory}/key.pem`,
    verify: 'verify_peer',
    fail_if_no_peer_cert: 'true',
  };
  return [
    'listeners.tcp = none',
    `listeners.ssl.1 = ${address}:${port}`,
    `management.ssl.ip = ${address}`,
    `management.ssl.port = ${managementPort}`,
    ...['ssl_options', 'management.ssl'].flatMap((prefix) =>
      Object.entries(options).map(([name, value]) => `${prefix}.${name} = ${value}`),
    ),
  ];
}
