import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import { destroySocket, openConnection } from '@app/amqp/connection/open-connection';
import { closeChannel } from '@app/amqp/connection/opened-channel';
import { eventQueue } from '@app/rabbitmq/topology/topology';
import { within } from '@app/runtime/within';
import type { Account } from '@app/rabbitmq-admin/accounts/rights';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { NO_ADDRESS, type Findings } from '../finding';

const LEAST_VERSION = [3, 10];
const REFUSED = 403;
const TOO_LARGE = 406;
/** The value of max_message_size that docs/servers.md asks for. */
const MOST_MESSAGE_MIB = 5;
const ANSWER_MS = 10_000;
/** The end of a connection may be lost as well. */
const CLOSE_MS = 2000;
/** Nothing has this name, and nothing is bound with this key. */
const NOTHING = 'doctor.tries';

/** The exchanges that an account publishes to. Checking them needs no right, and says whether set-up was run. */
const NEEDED: Record<Account, readonly string[]> = {
  gateway: ['calls', 'calls.standby', 'events.own'],
  users: ['replies', 'events.own', 'events', 'retry', 'dead'],
  notifications: ['calls', 'calls.standby', 'replies', 'events.own', 'events', 'retry', 'dead'],
  publisher: ['commands'],
};
/** It reaches every queue by its name: no account may publish to it. */
const DEFAULT_EXCHANGE = '';

/**
 * Connects with an account, and tries what must work and what must be refused. Nothing is changed: names and keys lead nowhere.
 *
 * @param isTrusted whether the services take it for the account of a service, which needs no grant
 * @param answerMs how long an answer is waited for. A broker that is short of memory or disk does not answer a publisher at all
 */
export async function lookAtAccount(
  findings: Findings,
  account: Account | 'full-rights',
  connection: { url: string; tlsFiles: TlsFiles },
  isTrusted = true,
  answerMs = ANSWER_MS,
): Promise<void> {
  const subject = `account ${account}`;
  let model: ChannelModel;
  try {
    model = await openConnection({ ...connection, name: 'doctor' });
  } catch (error) {
    return findings.problem(subject, `cannot connect (${(error as Error).message})`, connectAdvice((error as Error).message));
  }
  try {
    const version = String((model.connection.serverProperties as { version?: unknown }).version);
    if (account === 'full-rights') {
      lookAtVersion(findings, version);
      return await lookAtMessageSize(findings, model, answerMs);
    }
    const tried = tryRights(account, model);
    if (!(await within(answerMs, tried)))
      return findings.problem(
        subject,
        `connects, but the broker did not answer for ${answerMs / 1000} s`,
        'see docs/runbooks/BrokerBlocked.md',
      );
    const wrong = await tried;
    if (wrong !== undefined) findings.problem(subject, wrong, 'run "npm run setup"');
    else if (!isTrusted)
      findings.problem(
        subject,
        'TRUSTED_PUBLISHERS lacks its name: the services refuse what it publishes',
        'set TRUSTED_PUBLISHERS for users, notifications and the tools',
      );
    else findings.ok(subject, 'connects, finds its exchanges, and is refused what it must not do');
  } finally {
    await within(CLOSE_MS, model.close());
    destroySocket(model);
  }
}

/** Number of events that wait for notifications, by the full-rights account; undefined when the broker does not say it in time. */
export async function waitingEvents(connection: { url: string; tlsFiles: TlsFiles }): Promise<number | undefined> {
  const model = await openConnection({ ...connection, name: 'doctor' }).catch(() => undefined);
  if (!model) return undefined;
  try {
    let waiting: number | undefined;
    const ask = async () => {
      const channel = await openChannel(model);
      waiting = (await channel.checkQueue(eventQueue('notifications'))).messageCount;
    };
    await within(ANSWER_MS, ask());
    return waiting;
  } finally {
    await within(CLOSE_MS, model.close());
    destroySocket(model);
  }
}

function lookAtVersion(findings: Findings, version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = LEAST_VERSION;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor))
    findings.ok('account full-rights', `connects, RabbitMQ ${version}`);
  else findings.problem('version', `RabbitMQ ${version}`, `use RabbitMQ ${LEAST_VERSION.join('.')} or later`);
}

/** No API of the broker has this setting, so a message above it is tried. Nothing keeps it: no queue has its name. */
async function lookAtMessageSize(findings: Findings, model: ChannelModel, answerMs: number): Promise<void> {
  const subject = 'message size';
  const tried = isAllowed(model, publishTooMuch, TOO_LARGE);
  if (!(await within(answerMs, tried))) {
    // The end of the connection would wait for an answer, too.
    destroySocket(model);
    return findings.skipped(subject, `the broker did not answer for ${answerMs / 1000} s`);
  }
  if (await tried)
    findings.warning(
      subject,
      `the broker takes messages of more than ${MOST_MESSAGE_MIB} MiB, which fill a queue and the memory of its consumers`,
      `set max_message_size = ${MOST_MESSAGE_MIB * 1024 * 1024}: "Settings of the broker" in docs/servers.md`,
    );
  else findings.ok(subject, `the broker refuses messages of more than ${MOST_MESSAGE_MIB} MiB`);
}

/** @returns what is wrong with the rights; undefined when nothing is */
async function tryRights(account: Account, model: ChannelModel): Promise<string | undefined> {
  try {
    const channel = await openChannel(model);
    await checkExchanges(channel, NEEDED[account]);
    await closeChannel(channel);
  } catch (error) {
    return (error as Error).message;
  }
  const tooMuch: string[] = [];
  if (await isAllowed(model, (channel) => channel.assertQueue(NOTHING, { autoDelete: true, exclusive: true })))
    tooMuch.push('declares a queue');
  if (await isAllowed(model, publishToNothing)) tooMuch.push('publishes to the default exchange');
  return tooMuch.length > 0 ? `${tooMuch.join(' and ')}, which it must not` : undefined;
}

const publishToNothing = async (channel: ConfirmChannel): Promise<void> => {
  channel.publish(DEFAULT_EXCHANGE, NOTHING, Buffer.alloc(0), { mandatory: true });
  await channel.waitForConfirms();
};

const publishTooMuch = async (channel: ConfirmChannel): Promise<void> => {
  channel.publish(DEFAULT_EXCHANGE, NOTHING, Buffer.alloc(MOST_MESSAGE_MIB * 1024 * 1024 + 1));
  await channel.waitForConfirms();
};

/** Whether the broker allows it. @throws Error when it fails with another code of AMQP than `refusal` */
async function isAllowed(
  model: ChannelModel,
  work: (channel: ConfirmChannel) => Promise<unknown>,
  refusal = REFUSED,
): Promise<boolean> {
  const channel = await openChannel(model);
  const ended = new Promise<Error & { code?: number }>((resolve) => {
    channel.once('error', resolve);
    channel.once('close', () => resolve(new Error('the connection was lost')));
  });
  const failed = await Promise.race([
    work(channel).then(
      () => undefined,
      (error: unknown) => error as Error & { code?: number },
    ),
    ended,
  ]);
  if (!failed) {
    await closeChannel(channel);
    return true;
  }
  // The channel may end before its error arrives.
  const reason = failed.code === undefined ? await ended : failed;
  if (reason.code !== refusal) throw reason;
  return false;
}

async function openChannel(model: ChannelModel): Promise<ConfirmChannel> {
  const channel = await model.createConfirmChannel();
  return channel.on('error', () => undefined);
}

function connectAdvice(reason: string): string {
  if (/ENOTFOUND|EAI_AGAIN|not resolved/.test(reason)) return NO_ADDRESS;
  if (/certificate|TLS|SSL/i.test(reason))
    return 'see "TLS" in docs/operations.md: the authority, the dates and the name of the certificate';
  if (/ACCESS.REFUSED|403|virtual host/.test(reason))
    return 'correct user, password and virtual host of the URL, or run "npm run setup" with it';
  return 'start the broker, and correct host and port of the URL';
}
