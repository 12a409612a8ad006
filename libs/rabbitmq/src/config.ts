import { Settings, text, url } from '@app/runtime/settings';

const adminBroker = {
  amqpUrl: url('AMQP_URL', ['amqp:', 'amqps:'], 'RabbitMQ as the full-rights account that sets up and looks after dead letters.'),
  amqpCaFile: text('AMQP_CA_FILE', 'PEM file of the authority that signed the certificate of RabbitMQ.'),
};

/** Configuration of the one-shot declaration of exchanges and queues. */
export class TopologyConfig extends Settings(adminBroker) {}

/** Configuration of the command line tool for dead letters. */
export class DeadLettersConfig extends Settings(adminBroker) {}

export const topologyConfig = () => new TopologyConfig(process.env);
export const deadLettersConfig = () => new DeadLettersConfig(process.env);
