import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { chromium, type Browser, type Page } from 'playwright-core';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { requiredEnv } from '@app/testing/required-env';
import { System } from '@app/testing/system/system';

const ORGANIZATION = 'acme';

/** The example of docs/bell.md as a reader sees and uses it. */
describe('the bell', () => {
  let servers: PrivateServer[] = [];
  let system: System;
  let bell: ChildProcess;
  let url = '';
  let browser: Browser;
  let page: Page;
  const failures: string[] = [];

  beforeAll(async () => {
    servers = await Promise.all([PrivateServer.start('rabbitmq'), PrivateServer.start('postgres')]);
    system = await System.start({ amqpUrl: servers[0]?.url, databaseUrl: servers[1]?.url });
    bell = spawn(process.execPath, [join(process.cwd(), 'examples/bell/server.mjs')], {
      env: { GATEWAY_URL: system.services.gateway.url, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: bell.stdout! }), 'line')) as [string];
    url = line.replace(/^.*(http\S+)\/sign-in.*$/, '$1');
    browser = await chromium.launch({ executablePath: requiredEnv('TEST_CHROMIUM') });
    page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    page.on('pageerror', ({ message }) => failures.push(message));
    page.on('console', (message) => message.type() === 'error' && failures.push(message.text()));
  });
  afterAll(async () => {
    await browser?.close();
    bell?.kill('SIGKILL');
    await system?.stop();
    await Promise.all(servers.map((server) => server.remove()));
  });

  async function call(operation: Parameters<System['call']>[0], data: object): Promise<void> {
    const { status } = await system.call(operation, { organizationId: ORGANIZATION, ...data });
    expect(status).toBe(200);
  }
  const add = (notificationId: string, headline = 'Number {its-number}') =>
    call('notifications/add', {
      notificationId,
      documentId: 'roadmap',
      actionUser: { userId: 'ada', name: 'Ada Lovelace' },
      displayHeadlineMessageTemplate: headline,
      displayHeadlineMessageTemplateData: { 'its-number': notificationId },
      notifyUsers: [{ userId: 'grace' }],
    });
  const badge = () => page.locator('#badge').innerText();
  const headlines = () => page.locator('#list li p:first-child').allInnerTexts();
  const button = (name: string | RegExp) => page.getByRole('button', { name });
  /** The request that the page makes by itself every 10 s. */
  const look = () => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  const picture = async (name: string) => {
    const folder = process.env.SCREENSHOTS;
    if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
  };

  it('asks to sign in, and then shows what is unread', async () => {
    await page.goto(url);
    await page.getByText('Sign in first').waitFor({ state: 'attached' });
    failures.length = 0;
    await page.goto(`${url}/sign-in?as=newcomer`);
    await button('Notifications, none unread').click();
    await page.getByText('There are no notifications.').waitFor();
    await call('users/add', { users: [{ userId: 'grace' }] });
    for (let number = 1; number <= 12; number++) await add(String(number));
    await page.goto(`${url}/sign-in?as=grace`);
    await eventually(async () => (await badge()) === '12');
    await button('Notifications, 12 unread').click();
    await eventually(async () => (await headlines()).length === 10);
    expect((await headlines())[0]).toBe('Number 12');
    expect(await page.getByText('There are no notifications.').isVisible()).toBe(false);
    await picture('bell');
    await button('Older ones').click();
    await eventually(async () => (await headlines()).length === 12);
    expect(await button('Older ones').count()).toBe(0);
    // The keyboard goes on at the first of them, and a reader of the screen has heard the number.
    expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toBe('Mark as read: Number 2');
    expect(await page.locator('#unread[role=status]').innerText()).toBe('12 unread');
  });

  it('marks one as read and as unread again, with the keyboard alone', async () => {
    await button('Mark as read: Number 12').focus();
    await page.keyboard.press('Enter');
    await eventually(async () => (await badge()) === '11');
    await page.keyboard.press('Enter');
    await eventually(async () => (await badge()) === '12');
    expect(await button('Mark as unread').count()).toBe(0);
  });

  it('marks all that it shows as read, and a newcomer stays unread', async () => {
    await add('newcomer');
    await button('Mark all as read').click();
    await eventually(async () => (await headlines())[0] === 'Number newcomer');
    expect(await badge()).toBe('1');
    expect(await button('Mark as read').count()).toBe(1);
  });

  it('shows newcomers, drops what was deleted, and never runs what a notification contains', async () => {
    await add('script', '<img src=x onerror="document.title=1"> {actionUser} and {nobody}');
    await call('notifications/delete', { notificationIds: ['newcomer'] });
    await look();
    await eventually(async () => (await headlines())[0]?.startsWith('<img'));
    expect((await headlines())[0]).toContain('Ada Lovelace and {nobody}');
    expect(await headlines()).not.toContain('Number newcomer');
    expect(await badge()).toBe('1');
    expect(await page.title()).toBe('A bell');
  });

  it('shows 100+ when there are more', async () => {
    await Promise.all(Array.from({ length: 105 }, (_, number) => add(`many ${number}`)));
    await look();
    await eventually(async () => (await badge()) === '100+');
    expect(await button('Notifications, at least 100 unread').count()).toBe(1);
  });

  it('goes on past pages of which the reader may see nothing, with the keyboard at the same button', async () => {
    await call('users/add', { users: [{ userId: 'heidi' }] });
    await call('documents/set', { documentId: 'secret', access: 'restricted' });
    const database = new Client({ connectionString: servers[1]?.url });
    await database.connect();
    const isKnown = async () => (await database.query('SELECT FROM notifications.document_access')).rowCount === 1;
    await eventually(isKnown);
    // A page looks at 5000, and the oldest one of all is to be seen.
    await database.query(`INSERT INTO notifications.notifications
      SELECT organization, 'old ' || n, n, CASE n WHEN 0 THEN document_id ELSE 'secret' END, NULL, true, size, fingerprint, content
      FROM notifications.notifications, generate_series(0, 10001) n WHERE id = '7'`);
    await database.end();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${url}/sign-in?as=heidi`);
    await button(/^Notifications/).click();
    await button('Older ones').focus();
    expect(await page.getByText('There are no notifications.').isVisible()).toBe(false);
    await eventually(async () => {
      const shown = await headlines();
      if (shown.length === 0) await page.keyboard.press('Enter');
      return shown.length > 0;
    });
    expect(await headlines()).toEqual(['Number 7']);
    expect(asked.filter((path) => path === '/api/inbox').length).toBeGreaterThan(2);
    expect(asked).not.toContain('/api/mark-all');
  });

  it('says so when the notifications are away, and nothing failed unseen', async () => {
    expect(failures).toEqual([]);
    await system.services.gateway.stop();
    await look();
    await page.getByText('The notifications are not there for the moment.').waitFor();
  });

  it('says the same when a proxy answers in place of the gateway, and not in JSON', async () => {
    const proxy = createServer((_, response) => response.writeHead(502, { 'content-type': 'text/html' }).end('<html>'));
    await once(proxy.listen(Number(new URL(system.services.gateway.url).port), '127.0.0.1'), 'listening');
    const answer = await fetch(`${url}/api/count`, { headers: { cookie: 'user=grace' } });
    expect([answer.status, await answer.text()]).toEqual([503, '{"error":"The notifications are not there for the moment."}']);
    proxy.close();
  });
});
