import fastify from 'fastify';
import { html } from '../html/html';
import { History } from '../watch/history';
import { measuresOf } from '../watch/measures';
import type { WatchedProcess } from '../watch/process';
import { readingOf } from '../watch/reading';
import { OWN, queuesPage } from './queues';

const NONE_WAITED = 'no message was seen waiting';
const unknown = (queues: number) => `The length of ${queues} of ${OWN.length} queues is not known now.`;
const ALL_UNKNOWN = unknown(OWN.length);

/** A process that knows the queues of this service. */
function process(service: string, length: number): WatchedProcess {
  const lines = OWN.filter(({ name }) => name.startsWith(service)).map(({ name }) => `queue_messages{queue="${name}"} ${length}`);
  return { address: service, service, now: readingOf(lines.join('\n'), 0), tenants: [] } as unknown as WatchedProcess;
}
const both = (length: number) => [process('users', length), process('notifications', length)];

/** The page after ticks with these processes and queues of the broker. */
async function shown(ticks: { processes?: WatchedProcess[]; queues?: { name: string; ready: number }[] }[]): Promise<string> {
  const history = new History();
  for (const { processes = [], queues } of ticks) history.add(measuresOf(processes, queues));
  const app = fastify();
  app.decorateRequest('session', null as never);
  app.decorateRequest('form', null as never);
  app.addHook('onRequest', async (request) => {
    request.session = { operator: 'Ada', id: '' };
    request.form = () => html``;
  });
  const { processes = [] } = ticks.at(-1) ?? {};
  queuesPage(app, { history, processes }, { queues: [], ofConnections: NaN, problem: undefined });
  const { body } = await app.inject('/queues');
  await app.close();
  return body;
}

it('says that no message waited when it has looked', async () => {
  const page = await shown([{ processes: both(0) }, { processes: both(0) }]);
  expect(page).toContain(`In the last 4 s ${NONE_WAITED} in any queue.`);
  expect(page).not.toContain('is not known now');
});

it('says that it does not know while nobody tells the lengths, and shows what waited before', async () => {
  const page = await shown([{ processes: both(100_000) }, {}]);
  expect(page).toContain(ALL_UNKNOWN);
  expect(page).toMatch(/aria-label="[\w.]+: now –, at most 100,000 in ten minutes"/);
  const never = await shown([{}]);
  expect(never).toContain(ALL_UNKNOWN);
  for (const one of [page, never]) expect(one).not.toContain(NONE_WAITED);
});

it('takes the lengths of the broker while no process of a service answers', async () => {
  const ofUsers = OWN.filter(({ name }) => name.startsWith('users'));
  const without = await shown([{ processes: [process('notifications', 0)] }]);
  expect(without).toContain(unknown(ofUsers.length));
  expect(without).not.toContain(NONE_WAITED);
  const queues = ofUsers.map(({ name }) => ({ name, ready: name === 'users.calls' ? 500 : 0 }));
  const page = await shown([{ processes: [process('notifications', 0)], queues }]);
  expect(page).toMatch(/aria-label="users\.calls: now 500,/);
  for (const text of [NONE_WAITED, 'is not known now']) expect(page).not.toContain(text);
});
