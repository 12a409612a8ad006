import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { ServiceProcess } from '@app/testing/system/service-process';
import type { System } from '@app/testing/system/system';

const TOKEN = 'a token of the operator with more than 32 bytes';

/** The page beside the system that it watches, for programs. test/browser has the same for people. */
export const operatorsPage = (system: () => System): void =>
  describe("the operator's page", () => {
    let operator: ServiceProcess;
    beforeAll(async () => {
      const { env, services } = system();
      const processes = Object.values(services).map(({ healthPort }) => `localhost:${healthPort}`);
      const own = { OPERATOR_TOKEN: TOKEN, OPERATOR_PROCESSES: processes.join(','), OPERATOR_PORT: '0' };
      operator = await new ServiceProcess('operator', { ...env, ...own }).start();
    });
    afterAll(() => operator?.stop('SIGKILL'));

    const get = async (path: string, token = TOKEN) => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(operator.url + path, { headers });
      return { status: response.status, text: await response.text() };
    };

    it('watches all processes, and refuses who does not have the token', async () => {
      await eventually(async () => (await get('/')).text.includes('3 of 3 processes are ready'));
      expect((await get('/', 'wrong')).status).toBe(401);
      expect((await fetch(operator.url, { redirect: 'manual' })).status).toBe(303);
    });

    it.each(['/queues', '/work', '/letters', '/letters/users.commands.dead', '/keys', '/keys/demo-key', '/audit'])(
      'has %s',
      async (path) => {
        await eventually(async () => (await get(path)).status === 200);
      },
    );

    it('has the id of the request of each letter', async () => {
      const connection = await connect(system().amqpUrl);
      const channel = await connection.createConfirmChannel();
      const headers = { 'x-api-key': 'demo-key', 'x-request-id': 'asked-for-the-letter' };
      channel.publish('commands', 'notifications.add.v1', Buffer.from('{}'), { headers, messageId: 'letter' });
      await channel.waitForConfirms();
      const page = '/letters/notifications.commands.refused';
      await eventually(async () => (await get(page)).text.includes('<td class="wrap">asked-for-the-letter</td>'));
      await channel.purgeQueue('notifications.commands.refused');
      await connection.close();
    });

    it('shows the calls of each key', async () => {
      await eventually(async () => {
        await system().call('users/add', { organizationId: 'watched', users: [{ userId: 'u' }] });
        return /demo-key <strong>[\d.,]*[1-9][\d.,]*\/s</.test((await get('/work')).text);
      });
    });

    it('ends at once, and without a failure', async () => {
      expect(await operator.stop('SIGTERM')).toBe(0);
    });
  });
