// The mutants of scripts/mutants.mjs.
import { COST_MUTANTS } from './cost-mutants.mjs';
import { COPY_MUTANTS } from './copy-mutants.mjs';
import { GATEWAY_MUTANTS } from './gateway-mutants.mjs';
import { LIFECYCLE_MUTANTS } from './lifecycle-mutants.mjs';
import { NEIGHBOUR_MUTANTS } from './neighbour-mutants.mjs';
import { SHARED_MESSAGE_MUTANTS } from './shared-message-mutants.mjs';
import { SUSPECT_MUTANTS } from './suspect-mutants.mjs';
import { VISIBILITY_MUTANTS } from './visibility-mutants.mjs';
import { WRITER_MUTANTS } from './writer-mutants.mjs';

const INSERTS = 'apps/notifications/src/db/insert-notifications.sql.ts';
const SERVER = 'libs/rabbitmq/src/server/rabbit.server.ts';
const REDELIVERED = ['libs/rabbitmq/test/recovery.int-spec.ts', 'the command is delivered again'];

/**
 * Each edit, of a file, replaces the first text by the second; the test is a file, and a part of a name in it. Of a fault test: a part of its name.
 * @typedef {{ name: string, edits: string[][], test: string[] }} Mutant
 * @type {Mutant[]}
 */
export const MUTANTS = [
  {
    name: 'an id that is stored already is not noticed',
    edits: [
      [INSERTS, '    ON CONFLICT (organization, id) DO NOTHING\n', ''],
      [
        INSERTS,
        '`CASE WHEN (SELECT true FROM notifications n WHERE n.organization = ${organization} AND n.id = ${id}) IS NULL THEN ${organization} END`',
        'organization',
      ],
    ],
    test: ['repetition', 'one effect, and the same answer'],
  },
  {
    name: 'ack before commit',
    edits: [
      [SERVER, 'const outcome: Outcome = mayStart', 'delivery.ack();\n      const outcome: Outcome = mayStart'],
      ['libs/rabbitmq/src/settle/settlement.ts', 'delivery.ack();', ''],
    ],
    test: REDELIVERED,
  },
  {
    name: 'auto-ack',
    edits: [
      ['libs/rabbitmq/src/delivery/queue-consumer.ts', 'onMessage, { priority }', 'onMessage, { priority, noAck: true }'],
      ['libs/rabbitmq/src/settle/settlement.ts', 'delivery.ack();', ''],
    ],
    test: REDELIVERED,
  },
  {
    name: 'no mandatory',
    edits: [
      [
        'libs/amqp/src/publishing/publisher.ts',
        '{ exchange, routingKey, mandatory }, properties, body, onConfirm',
        '{ exchange, routingKey, mandatory: false && mandatory }, properties, body, onConfirm',
      ],
    ],
    test: ['broker', 'queue of commands deleted'],
  },
  {
    name: 'no deadline check',
    edits: [
      ['libs/rabbitmq/src/server/handler-runner.ts', 'if (delivery.isExpired)', 'if (false as boolean)'],
      [INSERTS, '(t.deadline IS NULL OR moment.latest_end <= t.deadline + 500)', 'true'],
      ['apps/notifications/src/writer/write-queue.ts', 'leaders.has(identity) || left < 0', 'leaders.has(identity)'],
    ],
    test: ['pauses', 'SIGSTOP of both writers'],
  },
  {
    name: 'no suspects',
    edits: [['libs/rabbitmq/src/delivery/delivery.ts', 'this.returns >= SUSPECT_AFTER', 'this.returns >= Infinity']],
    test: ['poison', 'among 1000 good ones'],
  },
  {
    name: 'tenant left out of a WHERE',
    edits: [
      [
        'apps/notifications/src/db/pages.repository.ts',
        'WHERE o.api_key = ${use(filter.apiKey)} AND o.organization_id = ${use(filter.organizationId)})',
        'WHERE o.organization_id = ${use(filter.organizationId)} ORDER BY o.id LIMIT 1)',
      ],
    ],
    test: ['short', 'SIGKILL of a writer, 1 times, at'],
  },
  {
    name: 'a blocked broker is not noticed',
    edits: [['libs/amqp/src/connection/channel.ts', "if (state === 'blocked')", 'if (false as boolean)']],
    test: ['broker', 'memory alarm'],
  },
  {
    name: 'a nack is taken for a confirm',
    edits: [['libs/amqp/src/publishing/publisher.ts', "nacked ? 'nacked'", "nacked ? 'confirmed'"]],
    test: ['broker', 'queue of commands full'],
  },
  {
    name: 'silence is not noticed',
    edits: [['libs/amqp/src/connection/open-connection.ts', 'const MOST_SILENCE_S = 8;', 'const MOST_SILENCE_S = 800;']],
    test: ['links', 'until they are found'],
  },
  ...LIFECYCLE_MUTANTS,
  ...COPY_MUTANTS,
  ...GATEWAY_MUTANTS,
  ...NEIGHBOUR_MUTANTS,
  ...COST_MUTANTS,
  ...SHARED_MESSAGE_MUTANTS,
  ...SUSPECT_MUTANTS,
  ...VISIBILITY_MUTANTS,
  ...WRITER_MUTANTS,
  {
    name: 'a message of commands that is acknowledged with its first one',
    edits: [['libs/rabbitmq/src/delivery/commands-of.ts', 'if (this.settled.size < this.count)', 'if (this.settled.size > 1)']],
    test: ['libs/rabbitmq/test/shared-messages.int-spec.ts', 'are acknowledged together'],
  },
  {
    name: 'a redelivery that reads up to a later moment',
    edits: [
      [
        'apps/notifications/src/db/readings.sql.ts',
        'coalesce((SELECT moment FROM deletions',
        'coalesce((SELECT NULL::bigint FROM deletions',
      ],
    ],
    test: ['apps/notifications/src/db/readings.int-spec.ts', 'does not mark more on redelivery'],
  },
  {
    name: 'a redelivery that finds nothing is refused for good',
    edits: [['libs/contracts/src/error.ts', "  'NOT_FOUND',\n]);", ']);']],
    test: ['libs/rabbitmq/src/settle/ack-policy.spec.ts', 'does not say NOT_FOUND'],
  },
  {
    name: 'a refusal before its ack',
    edits: [['libs/rabbitmq/src/settle/ack-policy.ts', "return { do: 'ackThenReply'", "return { do: 'replyThenAck'"]],
    test: ['libs/rabbitmq/test/refusals.int-spec.ts', 'UNAVAILABLE: when the ack is lost'],
  },
  {
    name: 'a guess that no statement looks up',
    edits: [
      [INSERTS, 'o.api_key = t.api_key AND o.organization_id = t.organization_id\n', 'o.organization_id = t.organization_id\n'],
    ],
    test: ['apps/notifications/src/writer/restored-database.int-spec.ts', 'mixes no tenants'],
  },
  {
    name: 'an event that is deleted before its confirm',
    edits: [
      [
        'libs/postgres/src/outbox/outbox.ts',
        'const again = (await',
        'await this.stored.delete(batch.map(({ seq }) => seq));\n        const again = (await',
      ],
    ],
    test: ['libs/postgres/src/outbox/outbox-from-memory.int-spec.ts', 'leaves to the table'],
  },
  {
    name: 'refused events that come back before the others',
    edits: [['libs/postgres/src/outbox/kept-events.ts', 'if (more && this.seqs.size <= MOST) return false;', '']],
    test: ['libs/postgres/src/outbox/kept-events.spec.ts', 'nor one while there are others'],
  },
  {
    name: 'keys without turns in the outbox',
    edits: [['libs/postgres/src/outbox/stored-events.ts', 'this.batches % TURNS.every === 1', 'false']],
    test: ['apps/notifications/src/db/outbox-relay.int-spec.ts', 'publishes those of one tenant soon'],
  },
  {
    name: 'connections with the transaction_timeout of their account',
    edits: [
      [
        'libs/postgres/src/connections/writable-client.ts',
        "CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', false) END",
        'NULL',
      ],
    ],
    test: ['libs/postgres/src/connections/data-source.int-spec.ts', 'nor limits from its account'],
  },
];
