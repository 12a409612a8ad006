import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { openConnection } from '@app/amqp/connection/open-connection';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { PrivateServer } from '@app/testing/system/private-server';
import { requiredEnv } from '@app/testing/required-env';
import { ServiceProcess } from '@app/testing/system/service-process';
import { System } from '@app/testing/system/system';
import { violationsOf } from './axe';

export const TOKEN = randomBytes(32).toString('hex');
export const DEAD = 'notifications.commands.dead';
/** Folder for pictures of the pages. */
export const PICTURES = process.env.OPERATOR_PICTURES ?? process.env.SCREENSHOTS;

/** A whole system with the operator's page, and a browser that has it open. */
export class OperatorSystem {
  /** Errors of scripts, and violations of the content security policy. */
  readonly failures: string[] = [];

  private constructor(
    readonly servers: { broker: PrivateServer; database: PrivateServer },
    readonly system: System,
    /** A second process of notifications. */
    readonly replica: ServiceProcess,
    readonly operator: ServiceProcess,
    private readonly browser: Browser,
    readonly page: Page,
  ) {
    page.on('pageerror', ({ message }) => this.failures.push(message));
    page.on('console', (message) => message.type() === 'error' && this.failures.push(message.text()));
  }

  static async start(): Promise<OperatorSystem> {
    const [broker, database] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management'),
      PrivateServer.start('postgres'),
    ]);
    const system = await System.start({ amqpUrl: broker.url, databaseUrl: database.url });
    const replica = await system.replica('notifications').start();
    const processes = [...Object.values(system.services), replica].map(({ healthPort }) => `localhost:${healthPort}`);
    const operator = new ServiceProcess('operator', {
      ...system.env,
      RABBITMQ_MANAGEMENT_URL: broker.managementUrl,
      OPERATOR_TOKEN: TOKEN,
      OPERATOR_PROCESSES: processes.join(','),
      OPERATOR_PORT: '0',
      LOG_LEVEL: 'trace',
    });
    await operator.start();
    const browser = await chromium.launch({ executablePath: requiredEnv('TEST_CHROMIUM') });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    return new OperatorSystem({ broker, database }, system, replica, operator, browser, page);
  }

  /** @param path of a page */
  async open(path: string): Promise<void> {
    await this.page.goto(this.operator.url.replace('127.0.0.1', 'localhost') + path);
  }

  button = (name: string | RegExp) => this.page.getByRole('button', { name });
  main = () => this.page.locator('main').innerText();

  /** Presses Tab until this has the focus, by its text or its label. */
  async tabTo(name: string): Promise<void> {
    const focused = `(({ ariaLabel, innerText, labels }) => ariaLabel ?? (innerText || labels?.[0]?.innerText))(document.activeElement)`;
    for (let presses = 0; presses < 60; presses++) {
      await this.page.keyboard.press('Tab');
      if ((await this.page.evaluate<string | undefined>(focused))?.trim() === name) return;
    }
    throw new Error(`Tab does not lead to "${name}".`);
  }

  /** Publishes a letter as a service does. */
  async bury(messageId: string, body: string | object, headers: Record<string, unknown> = {}): Promise<void> {
    const { amqpUrl } = this.system;
    const model = await openConnection({ url: amqpUrl, name: 'test' });
    const channel = await model.createConfirmChannel();
    channel.publish('dead', DEAD, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), {
      persistent: true,
      messageId,
      contentType: 'application/json',
      userId: parseBrokerUrl(amqpUrl).username,
      headers: {
        'x-api-key': 'demo-key',
        'x-routing-key': 'notifications.add.v1',
        'x-attempt': 4,
        'x-first-failed-at': Date.parse('2026-01-01T00:00:00Z'),
        'x-dead-status': 'NOT_FOUND',
        'x-dead-reason': 'No such organization.',
        ...headers,
      },
    });
    await channel.waitForConfirms();
    await model.close();
  }

  /** The problems that axe-core finds on the open page. */
  violations = () => violationsOf(this.page);

  /** Saves a picture, when a folder is named: that of the documentation, or any other. */
  async picture(name: string): Promise<void> {
    const folder = PICTURES;
    if (!folder) return;
    const { width = 0, height = 0 } = this.page.viewportSize() ?? {};
    const end = await this.page.evaluate<number>(`document.querySelector('main').getBoundingClientRect().bottom`);
    const clip = { x: 0, y: 0, width, height: Math.min(height, Math.ceil(end)) };
    await this.page.screenshot({ path: join(folder, `${name}.png`), clip });
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.operator.stop('SIGKILL');
    await this.replica.stop('SIGKILL');
    await this.system.stop();
    await Promise.all(Object.values(this.servers).map((server) => server.remove()));
  }
}
