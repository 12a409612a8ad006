import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { requiredEnv } from '@app/testing/required-env';
import { Findings } from '../finding';
import { lookByManagement } from './management';

describe('the look at the nodes of a broker', () => {
  let broker: TestBroker;
  let server: Server;
  /** The management API of the broker, to which nodes are added that do not run, and feature flags that are off. */
  let url: URL;
  const gone = ['rabbit@two', 'rabbit@three'].map((name) => ({ name, running: false }));
  const flags = ['stable', 'experimental'].map((stability) => ({ name: `${stability}_one`, state: 'disabled', stability }));

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    const real = new URL(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'));
    url = new URL(real);
    real.username = real.password = '';
    server = createServer((request, response) => {
      const { authorization = '' } = request.headers;
      void fetch(new URL(request.url ?? '', real), { headers: { authorization } }).then(async (answer) => {
        const body: unknown = await answer.json();
        const more = request.url === '/api/nodes' ? gone : request.url === '/api/feature-flags' ? flags : undefined;
        response.writeHead(answer.status).end(JSON.stringify(more ? [...(body as object[]), ...more] : body));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(async () => {
    server?.close();
    await broker?.drop();
  });

  const look = async (href: string) => {
    const findings = new Findings('broker');
    await lookByManagement(findings, new ManagementApi(href, broker.url), {});
    return findings.all.map(({ state, subject, found }) => `${state} ${subject}: ${found}`);
  };
  const SINGLE = 'warning replicas: the broker is a single node: without it every call fails';

  it('tells a single node from the only one of three that runs', async () => {
    expect(await look(url.href)).toEqual(expect.arrayContaining([SINGLE, 'ok feature flags: all stable ones are on']));
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const found = await look(url.href);
    expect(found).toEqual(expect.arrayContaining(gone.map(({ name }) => `problem node ${name}: does not run`)));
    expect(found).not.toContain(SINGLE);
    expect(found).toContain('warning feature flags: off are stable_one: a later version of RabbitMQ does not start then');
  });
});
