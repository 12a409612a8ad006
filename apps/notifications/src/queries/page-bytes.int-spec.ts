import type { AddNotificationRequest } from '@app/contracts/notifications.add';
import { parseJson } from '@app/contracts/json';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { InboxRepository } from '../db/inbox.repository';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { PAGE_BYTES, PagesRepository } from '../db/pages.repository';
import type { Members } from '../users-service/members';
import { GetInboxHandler } from './get-inbox.handler';
import { GetNotificationsHandler } from './get-notifications.handler';
import { aNotification, testDatabase } from '../../test/notifications';

const members = { requireComplete: () => Promise.resolve() } as unknown as Members;
const context = new DeliveryContext({
  ...{ apiKey: 'tenant "1"', pattern: 'any', requestId: 'r', messageId: 'm' },
  ...{ awaited: true, redelivered: false, attempt: 1 },
});

/** Free data as callers may send it, as JSON text: what looks special to a parser, a printer or a database. */
const ODD_DATA = [
  '{}',
  '{"quote\\"":"\\"","back\\\\slash":"\\\\u0000 \\\\","slash":"\\/","control":"\\b\\f\\n\\r\\t\\u001f\\u007f","empty":""}',
  '{"lines":"\\u2028\\u2029","astral":"😀 \\ud83d\\ude00","combining":"é e\\u0301","right to left":"שלום","mark":"\\ufeff","last":"\\uffff"}',
  '{"b":1,"a":2,"10":3,"9":4,"01":5,"-1":6,"":7}',
  '{"numbers":[0,-0,1.0,1e2,1E+2,1e-7,123456789012345678901234567890,9007199254740993,0.1,1.7976931348623157e308,5e-324]}',
  '{"others":[null,true,false,[],{},[[[]]],{"a":{"b":{"c":[null]}}}]}',
  '{"twice":1,"twice":2,"dates":"2026-11-24T00:00:00.000Z","notifyUsers":[{"userId":"x"}],"],\\"notifyUsers\\":[":1}',
  `{ "spaces" :\t[ 1 , 2 ]\n, "long" : "${'x"\\u00e9'.replace('"', '\\"').repeat(20_000)}" }`,
];
/** No JSON text of them has a backslash. */
const USERS_WITH_COMMAS = [',', 'a', ',b', 'c,', ',,', ':true,', ','.repeat(3), 'd'];
const ODD_USERS = ['plain', '__proto__', 'constructor', '10', '9', '"quoted"', 'back\\slash', 'é😀', ' '];

/** The page of these notifications, written with nothing but the contract and JSON.stringify. */
function expectedPage(stored: { id: string; timestamp: number; request: AddNotificationRequest }[], more: object, each?: object) {
  const data = stored.map(({ id, timestamp, request }) => {
    const named = `{${inOrder((request.notifyUsers ?? []).map(({ userId }) => userId))
      .map((userId) => `${JSON.stringify(userId)}:true`)
      .join()}}`;
    const user = ({ userId, name = '', email = '' }: AddNotificationRequest['actionUser']) => ({ userId, name, email });
    const { documentId, organizationId, locationId } = request;
    const item = JSON.stringify({
      id,
      notificationSource: 'custom',
      notificationSourceData: request.notificationSourceData ?? {},
      actionUser: user(request.actionUser),
      displayBodyMessage: request.displayBodyMessage ?? '',
      displayHeadlineMessageTemplate: request.displayHeadlineMessageTemplate,
      displayHeadlineMessageTemplateData: request.displayHeadlineMessageTemplateData ?? {},
      metadata: { apiKey: context.apiKey, documentId, organizationId, locationId },
    });
    const end = JSON.stringify({ timestamp, ...each }).slice(1);
    return `${item.slice(0, -1)},"notifyUsers":${named},"notifyUsersByUserId":${named},${end}`;
  });
  const rest = JSON.stringify(more).slice(1);
  const begin = '{"status":"success","message":"Notification(s) retrieved successfully.","data":[';
  return `${begin}${data.join()}]${rest === '}' ? '' : ','}${rest}`;
}

/** The order of the properties of a JavaScript object: whole numbers first. */
const inOrder = (names: string[]) => {
  const numbers = names.filter((name) => /^(0|[1-9]\d{0,8})$/.test(name));
  return [...numbers.sort((a, b) => Number(a) - Number(b)), ...names.filter((name) => !numbers.includes(name))];
};

const database = testDatabase();
let pages: GetNotificationsHandler;
let inbox: GetInboxHandler;
let inserts: InsertNotificationsRepository;

beforeAll(async () => {
  const [dataSource] = database.dataSources;
  pages = new GetNotificationsHandler(members, new PagesRepository(dataSource));
  inbox = new GetInboxHandler(members, new InboxRepository(dataSource));
  inserts = new InsertNotificationsRepository(dataSource);
});

/** Stores the requests one after the other. @returns them with their timestamps, newest first */
async function store(requests: AddNotificationRequest[]) {
  for (const [number, request] of requests.entries()) {
    const { organizationId, documentId, locationId, notifyUsers = [], ...content } = request;
    const { actionUser, displayHeadlineMessageTemplate, displayHeadlineMessageTemplateData, displayBodyMessage } = content;
    const { notificationSourceData } = content;
    const shown = { displayHeadlineMessageTemplate, displayHeadlineMessageTemplateData, displayBodyMessage };
    await inserts.insert([
      aNotification({
        ...{ apiKey: context.apiKey, organizationId, documentId, locationId, id: idOf(documentId, number) },
        content: { actionUser, ...shown, notificationSourceData, notifyUsers },
      }),
    ]);
  }
  const rows = await database.dataSources[0].query<{ id: string; timestamp: string }[]>(
    'SELECT id, "timestamp" FROM notifications',
  );
  const times = new Map(rows.map(({ id, timestamp }) => [id, Number(timestamp)]));
  return requests
    .map((request, number) => ({ request, id: idOf(request.documentId, number) }))
    .map((one) => ({ ...one, timestamp: times.get(one.id) ?? NaN }))
    .sort((a, b) => b.timestamp - a.timestamp || (a.id < b.id ? 1 : -1));
}

const idOf = (documentId: string, number: number) => `${documentId} ${1000 + number}`;
const aRequest = (more: object): AddNotificationRequest => ({
  organizationId: 'org "1"\\',
  documentId: 'é "odd"\\',
  actionUser: { userId: 'actor' },
  displayHeadlineMessageTemplate: 'Hello',
  ...more,
});

it('answers exactly the bytes that JSON.stringify makes of the contract', async () => {
  const requests = [
    aRequest({}),
    aRequest({ notifyUsers: ODD_USERS.map((userId) => ({ userId, name: 'not shown' })), locationId: 'ö\\"' }),
    aRequest({ notifyUsers: USERS_WITH_COMMAS.map((userId) => ({ userId })) }),
    aRequest({ actionUser: { userId: '"', name: '\\', email: 'é@"' }, displayBodyMessage: '' }),
    ...ODD_DATA.map((json) => {
      const data = parseJson(Buffer.from(json)) as Record<string, unknown>;
      const text = JSON.stringify(data);
      return aRequest({
        notificationSourceData: data,
        displayBodyMessage: text,
        displayHeadlineMessageTemplate: text,
        displayHeadlineMessageTemplateData: { text, recipientUser: { userId: text } },
        notifyUsers: [{ userId: 'reader' }],
      });
    }),
  ];
  const stored = await store(requests);
  const { organizationId, documentId } = requests[0];
  const page = await pages.get({ organizationId, documentId }, context);
  expect(page.bytes.toString()).toBe(expectedPage(stored, {}));
  const reversed = await pages.get({ organizationId, documentId, order: 'asc' }, context);
  expect(reversed.bytes.toString()).toBe(expectedPage([...stored].reverse(), {}));

  const shown = stored.filter(({ request }) => request.notifyUsers?.some(({ userId }) => userId === 'reader'));
  const { bytes } = await inbox.get({ organizationId, userId: 'reader' }, context);
  const { unread, asOf } = JSON.parse(bytes.toString()) as { unread: object; asOf: number };
  expect(bytes.toString()).toBe(expectedPage(shown, { unread, asOf }, { read: false }));
});

it('answers an empty page, and ends a page at 4 MiB of the answer', async () => {
  const none = await pages.get({ organizationId: 'org', documentId: 'nothing' }, context);
  expect(none.bytes.toString()).toBe(expectedPage([], {}));

  const notifyUsers = Array.from({ length: 1000 }, (_, number) => ({ userId: `${'é'.repeat(120)}${number}` }));
  const stored = await store(Array.from({ length: 10 }, () => aRequest({ documentId: 'big', notifyUsers })));
  const { organizationId } = stored[0].request;
  const { bytes } = await pages.get({ organizationId, documentId: 'big' }, context);
  const { data, pageToken } = JSON.parse(bytes.toString()) as { data: unknown[]; pageToken: string };
  expect(data.length).toBeLessThan(10);
  expect(bytes.toString()).toBe(expectedPage(stored.slice(0, data.length), { pageToken }));
  expect(bytes.length).toBeLessThanOrEqual(PAGE_BYTES + 1024);
  const [next] = stored.slice(data.length);
  expect(bytes.length + Buffer.byteLength(expectedPage([next], {}))).toBeGreaterThan(PAGE_BYTES);
  const rest = await pages.get({ organizationId, documentId: 'big', pageToken }, context);
  expect(rest.bytes.toString()).toBe(expectedPage(stored.slice(data.length), {}));
});

it('parses few notifications with many users in one iteration of the event loop, and none that does not fit into the page', async () => {
  const notifyUsers = Array.from({ length: 1000 }, (_, number) => ({ userId: `${'u'.repeat(40)} ${number}` }));
  await store(Array.from({ length: 60 }, () => aRequest({ documentId: 'named', notifyUsers })));
  const parsed: number[] = [0];
  const { parse } = JSON;
  const parsing = jest.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    if (text.length > 10_000) parsed[parsed.length - 1]++;
    return parse(text) as unknown;
  });
  let isOver = false;
  const count = () => {
    parsed.push(0);
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const page = await pages.get({ organizationId: aRequest({}).organizationId, documentId: 'named' }, context);
  isOver = true;
  parsing.mockRestore();
  const { data } = JSON.parse(page.bytes.toString()) as { data: unknown[] };
  expect(data.length).toBeLessThan(60);
  // One more shows that the page is full.
  expect(parsed.reduce((sum, each) => sum + each)).toBe(data.length + 1);
  expect(Math.max(...parsed)).toBeLessThanOrEqual(2);
});
