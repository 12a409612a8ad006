import { isDeepStrictEqual } from 'node:util';
import type { ConsumeMessage } from 'amqplib';
import { report } from '@app/testing/report';
import { OPERATIONS, patternOf } from '@app/testing/system/system';
import { amountOf, runCampaign, Tally } from './campaign';
import { DirectPublisher, type BrokerReply } from './direct-publisher';
import { bytesCases, httpCases, queueCases, type BytesCase, type HttpCase, type QueueCase } from './hostile-cases';
import { ValidValues } from './hostile-values';
import { HttpClient, type Response } from './http-client';
import { problemAt, problemOfAnswer, problemOfRequest } from './published-form';
import { WatchedSystem } from './watched-system';

const HTTP_CASES = amountOf('SECURITY_HTTP_CASES', 1500);
const QUEUE_CASES = amountOf('SECURITY_QUEUE_CASES', 500);
const CONNECTIONS = 12;
/** Refused dead letters of this publisher before some are dropped because of the quota. With large bodies fewer are kept. */
const KEPT_AT_LEAST = 100;
/** Time limit of a case; most take a hundredth of it. */
const CASE_MS = 100;

interface Item {
  displayHeadlineMessageTemplate: string;
  displayBodyMessage: string;
  displayHeadlineMessageTemplateData: object;
  notificationSourceData: object;
}

type Sent = Partial<Item> & {
  organizationId: string;
  documentId: string;
  notificationId?: string;
  users: { userId: string }[];
};

/** Allowed answers to hostile input: neither a bug nor an outage. */
/** Routing keys of commands. */
const CHANGES = /\.(add|delete|erase|set|update)\./;
const REFUSALS = [
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
];

describe('hostile input', () => {
  let watched: WatchedSystem;
  let http: HttpClient;
  let publisher: DirectPublisher;
  let values: ValidValues;
  const tally = new Tally();
  let number = 0;

  beforeAll(async () => {
    watched = await WatchedSystem.start(2);
    http = new HttpClient(watched.system.services.gateway.url, CONNECTIONS);
    publisher = await DirectPublisher.connect(watched.system.amqpUrl);
    for (const service of ['users', 'notifications']) await publisher.takeDeadLetters(`${service}.commands.refused`);
    values = new ValidValues(watched.canary);
  });
  afterAll(async () => {
    http?.close();
    await publisher?.close();
    await watched?.stop();
  });

  const campaign = { concurrency: CONNECTIONS, afterLot: () => watched.readLogs() };

  it(
    'over HTTP is answered in the published form and never with 5xx, and 200 only when it is stored and valid',
    () =>
      runCampaign<HttpCase>({
        ...campaign,
        title: 'over HTTP',
        cases: httpCases(values, watched.canary),
        amount: HTTP_CASES,
        run: runHttp,
      }),
    60_000 + HTTP_CASES * CASE_MS,
  );

  it(
    'that is hardly HTTP is refused in the published form, or closed',
    () =>
      runCampaign<BytesCase>({
        ...campaign,
        title: 'hardly HTTP',
        cases: bytesCases(watched.canary),
        amount: Math.ceil(HTTP_CASES / 20),
        run: runBytes,
      }),
    60_000 + HTTP_CASES * CASE_MS,
  );

  it(
    'over the queue ends as a reply, as executed, or as a refused dead letter with a reason',
    () =>
      runCampaign<QueueCase>({
        ...campaign,
        title: 'over the queue',
        cases: queueCases(
          values,
          watched.tenants.map(({ apiKey }) => apiKey),
          watched.canary,
        ),
        amount: QUEUE_CASES,
        run: runQueue,
      }),
    60_000 + QUEUE_CASES * CASE_MS,
  );

  it('is not all refused', () => {
    report({ ...tally.toJSON() });
    for (const operation of OPERATIONS) expect(tally.of(`http ${operation} 200`)).toBeGreaterThan(0);
    for (const operation of OPERATIONS) expect(tally.of(`http ${operation} 400`)).toBeGreaterThan(0);
    // The rest may be closed without an answer.
    expect(tally.of('bytes 400')).toBeGreaterThan(0);
    for (const end of ['OK', 'INVALID_ARGUMENT', 'acked', 'refused INVALID_ARGUMENT'])
      expect(tally.of(`queue ${end}`)).toBeGreaterThan(0);
  });

  it('leaves every service running, without an error, and no token, password or body in its log', async () => {
    await Promise.all(Object.values(watched.system.services).map((service) => service.untilReady()));
    watched.readLogs();
    report({ 'log lines': watched.verdict.lines, findings: watched.verdict.findings.length });
    expect(watched.verdict).toEqual({ lines: expect.any(Number), findings: [] });
  });

  async function runHttp(one: HttpCase): Promise<void> {
    const { operation, method, path, body, headers, credentials } = one;
    const [tenant] = watched.tenants;
    const sent = [
      ...Object.entries({ ...tenant.headers, ...(credentials === 'invalid' && { 'x-svc-auth-token': watched.canary }) }).flat(),
    ];
    if (!headers.includes('content-type')) sent.push('content-type', 'application/json');
    const response = await http.send({ ...one, body: body.bytes, headers: [...sent, ...headers] });
    const { status } = response;
    const served = method === 'POST' && path.split('?')[0] === `/v1/${operation}`;
    tally.add(`http ${served ? operation : 'elsewhere'} ${status}`);
    if (method === 'HEAD') return expectRefused(status);
    const answer = expectPublished(response, served ? operation : undefined);
    if (!served || credentials === 'invalid') return expectRefused(status);
    if (status === 429) throw new Error('Too many calls: the limit is switched off');

    const data = dataOf(body.bytes);
    const problem = problemOfRequest(operation, data);
    if (status === 200) {
      // A bad name or address fails its entry, not the call.
      if (problem !== undefined && !/^data\/users\/\d+\/(name|email|initial) must NOT have more/.test(problem))
        throw new Error(`200 for a body that the document does not allow: ${problem}`);
      if (isUnstorable(data)) throw new Error('200 for a body that cannot be stored');
      await expectReadable(operation, data as Sent, response, answer);
    } else if (body.valid && headers.length === 0 && ![404, 409].includes(status)) {
      throw new Error(`${status} for a body that the document allows: ${response.text}`);
    }
  }

  async function runBytes({ bytes }: BytesCase): Promise<void> {
    const responses = await http.sendBytes(bytes);
    tally.add(`bytes ${responses.map(({ status }) => status).join() || 'closed'}`);
    for (const response of responses) {
      if (response.status === 200 && /^GET /.test(bytes.toString())) continue;
      expectPublished(response);
    }
  }

  async function runQueue({ key, body, properties, headers, awaited, vouched }: QueueCase): Promise<void> {
    const mark = `case ${number++}`;
    const known = vouched && watched.hasTenant(headers['x-api-key']);
    const options = {
      ...properties,
      ...(vouched && { userId: publisher.account }),
      headers: { ...headers, 'x-request-id': mark },
      mandatory: true,
    };
    if (awaited) await publisher.ask(key, body.bytes, mark, options);
    else await publisher.publish(key, body.bytes, options);
    const outcome = await watched.outcomeOf(key, mark);
    const isQuery = !CHANGES.test(key);
    if (outcome === 'replied') return expectReply(key, known, await publisher.reply(mark));
    if (outcome === 'refused') return expectDeadLetter(body.bytes, headers['x-api-key'], await publisher.deadLetter(mark));
    tally.add(`queue ${outcome}`);
    // Above the hourly quota.
    if (outcome === 'refused_dropped' && tally.of('queue refused') >= KEPT_AT_LEAST) return;
    if (outcome === 'expired' && awaited && 'x-deadline' in headers) return;
    if (outcome === 'dropped' && isQuery && !awaited) return;
    if (outcome !== 'acked' || isQuery || awaited) throw new Error(`A message of ${key} ended as ${outcome}`);
    if (!known) throw new Error('Executed for an unknown tenant, or without a user_id');
  }

  function expectDeadLetter(body: Buffer, apiKey: unknown, { content, properties }: ConsumeMessage): void {
    const {
      'x-dead-status': status,
      'x-dead-reason': reason,
      'x-api-key': tenant,
    } = (properties.headers ?? {}) as Record<string, unknown>;
    tally.add('queue refused');
    tally.add(`queue refused ${String(status)}`);
    if (!REFUSALS.includes(String(status)) || typeof reason !== 'string' || reason === '')
      throw new Error(`Dead as ${String(status)}: ${String(reason)}`);
    const size = properties.headers?.['x-dead-size'];
    const kept = size === undefined ? body : body.subarray(0, 1024);
    if (!content.equals(kept) || (size ?? body.length) !== body.length) throw new Error('The dead letter has another body');
    if (watched.hasTenant(apiKey) && tenant !== apiKey) throw new Error('The dead letter has another tenant');
  }

  function expectReply(key: string, known: boolean, { status, text }: BrokerReply): void {
    tally.add(`queue ${String(status)} ${key}`);
    const value: unknown = JSON.parse(text);
    if (status === 'OK') {
      const operation = OPERATIONS.find((one) => key === patternOf(one));
      const problem = operation && problemOfAnswer(operation, 200, { result: value });
      if (problem) throw new Error(`A reply that is not of the published form: ${problem}`);
      if (CHANGES.test(key) && !known) throw new Error('Executed for an unknown tenant, or without a user_id');
      return;
    }
    const problem = problemAt('/components/schemas/Failure', { error: value });
    if (problem) throw new Error(`An error that is not of the published form: ${problem}`);
    if (!REFUSALS.includes(String(status))) throw new Error(`${String(status)} for a message: ${text}`);
  }

  /** Checks that data answered with 200 is stored unchanged. */
  async function expectReadable(operation: string, data: Sent, { headers }: Response, answer: { data?: unknown }): Promise<void> {
    const [{ apiKey, headers: credentials }] = watched.tenants;
    if (operation === 'users/add') {
      const succeeded = Object.entries(answer.data as Record<string, { success: boolean }>).flatMap(([userId, { success }]) =>
        success ? [userId] : [],
      );
      const { rows } = await watched.sql.query<{ found: number }>(
        `SELECT count(*)::int AS found FROM users.users u JOIN users.organizations o ON o.id = u.organization
         WHERE o.api_key = $1 AND o.organization_id = $2 AND u.user_id = ANY ($3)`,
        [apiKey, data.organizationId, succeeded],
      );
      if (rows[0].found !== succeeded.length) throw new Error(`${rows[0].found} of ${succeeded.length} users are stored`);
    }
    if (operation !== 'notifications/add') return;
    const id = decodeURIComponent(headers['x-notification-id'] as string);
    if (data.notificationId !== undefined && id !== data.notificationId) throw new Error(`Stored as ${id}`);
    const read = await http.send({
      method: 'POST',
      path: '/v1/notifications/get',
      headers: ['content-type', 'application/json', ...Object.entries(credentials).flat()],
      body: Buffer.from(
        JSON.stringify({ data: { organizationId: data.organizationId, documentId: data.documentId, notificationIds: [id] } }),
      ),
      chunked: false,
    });
    const [item, ...others] = (JSON.parse(read.text) as { result: { data: Item[] } }).result.data;
    if (!item || others.length > 0) throw new Error(`Not readable: ${read.text}`);
    const expected = {
      displayHeadlineMessageTemplate: data.displayHeadlineMessageTemplate,
      displayBodyMessage: data.displayBodyMessage ?? '',
      displayHeadlineMessageTemplateData: data.displayHeadlineMessageTemplateData ?? {},
      notificationSourceData: data.notificationSourceData ?? {},
    };
    for (const [field, value] of Object.entries(expected)) {
      if (!isDeepStrictEqual(item[field as keyof Item], JSON.parse(JSON.stringify(value))))
        throw new Error(`${field} is read as ${read.text}`);
    }
  }
});

function expectPublished({ status, headers, text }: Response, operation?: (typeof OPERATIONS)[number]): { data?: unknown } {
  if (status !== 200) expectRefused(status);
  const body = JSON.parse(text) as { result?: { data?: unknown } };
  const problem = problemOfAnswer(operation, status, body);
  if (problem !== undefined) throw new Error(`${status}, and not of the published form: ${problem}: ${text}`);
  if (!headers['x-request-id']) throw new Error(`${status} without x-request-id`);
  if (headers['content-type'] !== 'application/json; charset=utf-8')
    throw new Error(`${status} of type ${headers['content-type']}`);
  return body.result ?? {};
}

function expectRefused(status: number): void {
  if (status < 400 || status >= 500) throw new Error(`Answered ${status}`);
}

/** `data` of a body; undefined when the body is not JSON. */
function dataOf(body: Buffer): unknown {
  try {
    return (JSON.parse(body.toString()) as { data?: unknown } | null)?.data;
  } catch {
    return undefined;
  }
}

/** Rules of errors.md for bodies that a schema cannot express. */
const isUnstorable = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.includes('\0') || !value.isWellFormed()
    : typeof value === 'object' && value !== null && Object.entries(value).flat().some(isUnstorable);
