import fastify, { type FastifyInstance } from 'fastify';
import type { DataSource } from 'typeorm';
import { createDataSource } from '@app/postgres/connections/data-source';
import { migrate } from '@app/postgres/migrations/migrate';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { AuditRepository } from '../db/audit.repository';
import { DATABASE } from '../db/schema';
import { html } from '../html/html';
import { auditPages } from './audit';

const NONE = 'Nobody has changed anything';
const BATCH = '00000000-0000-4000-8000-000000000000';

let database: TestDatabase;
let dataSource: DataSource;
let audit: AuditRepository;
let app: FastifyInstance;

beforeAll(async () => {
  database = await createEmptyDatabase();
  await migrate({ adminUrl: database.url, ...DATABASE });
  dataSource = await createDataSource({ name: 'test', url: database.url, poolSize: 2, ...DATABASE }).initialize();
  audit = new AuditRepository(dataSource);
  app = fastify();
  app.decorateRequest('session', null as never);
  app.decorateRequest('form', null as never);
  app.addHook('onRequest', async (request) => {
    request.session = { operator: 'Ada', id: '' };
    request.form = () => html``;
  });
  auditPages(app, audit);
});
afterAll(async () => {
  await app?.close();
  await dataSource?.destroy();
  await database?.drop();
});

const page = async (path: string) => (await app.inject(path)).body;
const line = (target: string, outcome?: string) =>
  audit
    .begin({ batch: BATCH, operator: 'Ada', address: '::1', action: 'replay letter', target, detail: '' })
    .then((seq) => (outcome === undefined ? undefined : audit.end(seq, outcome)));

it('says that nobody has changed anything only while that is so, and has every line on one of its pages', async () => {
  expect(await page('/audit')).toContain(NONE);
  for (let number = 0; number < 100; number++) await line(`letter ${number};`, 'kept: it is too old');
  const whole = await page('/audit');
  expect(whole).toContain('letter 0;');
  expect(whole).not.toContain('Older lines');
  await line('letter 100;', 'replayed');
  const newest = await page('/audit');
  expect(newest).not.toContain('letter 0;');
  const [, older = ''] = /href="([^"]+)">Older lines/.exec(newest) ?? [];
  const oldest = await page(older);
  expect(oldest.match(/letter \d+;/g)).toEqual(['letter 0;']);
  expect(oldest).toContain('href="/audit">Newest lines');
  const beyond = await page('/audit?before=1');
  expect(beyond).not.toContain(NONE);
  expect(beyond).toContain('There are no older lines.');
});

it('counts the outcomes of a form, and does not call them done', async () => {
  await line('letter 101;');
  const outcome = await page(`/audit/${BATCH}`);
  expect(outcome).toContain('<h1>Outcome</h1>');
  expect(outcome).toContain('100 kept, 1 replayed, 1 not known.');
});
