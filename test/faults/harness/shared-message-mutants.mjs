// Mutants of commands that share a message, and of events that their process publishes from memory.
const COMMANDS = 'libs/amqp/src/calls/commands.ts';
const CALLER = 'libs/amqp/src/calls/caller.ts';
const FORMAT = 'libs/amqp/src/messages/command-format.ts';
const COMMANDS_TEST = 'libs/amqp/src/calls/commands.spec.ts';
const FORMAT_TEST = ['libs/amqp/src/messages/command-format.spec.ts', 'keeps the deadline of each one'];
const NEXT_CHANNEL = ['libs/rabbitmq/test/shared-messages.int-spec.ts', 'are sent over the next channel'];

/** @type {import('./mutants.mjs').Mutant[]} */
export const SHARED_MESSAGE_MUTANTS = [
  {
    name: 'an ack that does not wait for the confirm of the reply',
    edits: [
      [
        'libs/rabbitmq/src/settle/reply-batcher.ts',
        '(await within(CONFIRM_MS, confirmed))) return confirmed || true',
        '(true as boolean)) return true',
      ],
    ],
    test: ['libs/rabbitmq/test/replies.int-spec.ts', 'a confirmed reply'],
  },
  {
    name: 'the last deadline for all commands of a message',
    edits: [[FORMAT, 'timeoutMs: timeLeft(request),', 'timeoutMs: Math.max(...requests.map(timeLeft)),']],
    test: FORMAT_TEST,
  },
  {
    name: 'a deadline that counts from the publication',
    edits: [
      [
        FORMAT,
        '({ deadline }: Request) => Math.ceil(deadline - now)',
        '({ options: { timeoutMs } }: Request) => Math.floor(timeoutMs)',
      ],
    ],
    test: FORMAT_TEST,
  },
  {
    name: 'a refused message that its first answer forgets',
    edits: [[COMMANDS, 'if (others?.delete(command) && others.size === 0)', 'if (others)']],
    test: ['libs/amqp/src/calls/commands-failures.spec.ts', 'is sent again without a command that was answered'],
  },
  {
    name: 'large bodies that share messages with small ones',
    edits: [[COMMANDS, 'const LARGE_BYTES = 16 * 1024;', 'const LARGE_BYTES = 64 * 1024;']],
    test: [COMMANDS_TEST, 'lets no body of more than 16 KiB'],
  },
  {
    name: 'unsent commands that end with their channel',
    edits: [
      [CALLER, '      for (const command of this.commands.takeUnsent()) void this.waiting.add(command);\n    });', '    });'],
    ],
    test: NEXT_CHANNEL,
  },
  {
    name: 'unsent commands whose outcome is called unknown',
    edits: [['libs/amqp/src/calls/pending-calls.ts', '?.channels.includes(channel)', '']],
    test: NEXT_CHANNEL,
  },
  {
    name: 'events whose age counts from the end of the statement',
    edits: [
      [
        'apps/notifications/src/writer/notification-writer.ts',
        'this.outbox.add([...inserted.values()], since);',
        'this.outbox.add([...inserted.values()], performance.now());',
      ],
    ],
    test: [
      'apps/notifications/src/writer/notification-writer.slow-database.int-spec.ts',
      'gives the outbox the time before the statement',
    ],
  },
  {
    name: 'events that wait for the next sweep after a failure',
    edits: [['libs/postgres/src/outbox/outbox.ts', 'this.later.want();\n      throw error;', 'throw error;']],
    test: ['libs/postgres/src/outbox/outbox-from-memory.int-spec.ts', 'reads by itself what the broker did not take'],
  },
];
