import { chromium, type Browser, type Page } from 'playwright-core';
import { PrivateServer } from '@app/testing/system/private-server';
import { requiredEnv } from '@app/testing/required-env';
import { System } from '@app/testing/system/system';
import { violationsOf } from './axe';

/** Swagger UI has the link of an operation inside its button, and all before the operations outside of its landmarks. */
const NOT_OURS = /^(nested-interactive: .*opblock-summary-control|region: )/;
const PAGES = ['/docs', '/docs/messages'];
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The pages of documents that the gateway serves. */
describe('the documents', () => {
  let servers: PrivateServer[] = [];
  let system: System;
  let browser: Browser;
  let page: Page;
  const failures: string[] = [];

  beforeAll(async () => {
    servers = await Promise.all([PrivateServer.start('rabbitmq'), PrivateServer.start('postgres')]);
    system = await System.start({ amqpUrl: servers[0]?.url, databaseUrl: servers[1]?.url });
    browser = await chromium.launch({ executablePath: requiredEnv('TEST_CHROMIUM') });
    page = await browser.newPage({ viewport: DESKTOP });
    page.on('pageerror', ({ message }) => failures.push(message));
    page.on('console', (message) => message.type() === 'error' && failures.push(message.text()));
  });
  afterAll(async () => {
    await browser?.close();
    await system?.stop();
    await Promise.all(servers.map((server) => server.remove()));
  });

  async function open(path: string): Promise<void> {
    await page.goto(system.services.gateway.url + path);
    if (path === '/docs') await page.locator('.opblock').first().waitFor();
  }

  it.each([DESKTOP, PHONE])('shows the first operation without scrolling far, at %j', async (viewport) => {
    await page.setViewportSize(viewport);
    await open('/docs');
    const box = await page.locator('.opblock').first().boundingBox();
    expect(box!.y).toBeLessThan(1.5 * viewport.height);
  });

  it('makes a call with the credentials that a reader enters', async () => {
    await page.setViewportSize(DESKTOP);
    await open('/docs');
    await page.getByRole('button', { name: 'Authorize' }).click();
    const fields = page.locator('.auth-container input');
    await fields.nth(0).fill('demo-key');
    await page.getByRole('button', { name: 'Apply credentials' }).first().click();
    await fields.last().fill('demo-token');
    await page.getByRole('button', { name: 'Apply credentials' }).last().click();
    await page.getByRole('button', { name: 'Close' }).last().click();
    await page.locator('.opblock-summary-control').first().click();
    await page.getByRole('button', { name: 'Execute' }).click();
    await expect(page.locator('.live-responses-table tbody td.response-col_status').first().innerText()).resolves.toContain(
      '200',
    );
  });

  it.each(['light', 'dark'] as const)('has no fault that axe-core finds, in %s, and fits a phone', async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    const found: string[] = [];
    for (const viewport of [DESKTOP, PHONE]) {
      await page.setViewportSize(viewport);
      for (const path of PAGES) {
        await open(path);
        found.push(
          ...(await violationsOf(page)).filter((one) => !NOT_OURS.test(one)).map((one) => `${path} ${viewport.width}: ${one}`),
        );
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        if (width > viewport.width) found.push(`${path} is ${width} px wide on ${viewport.width}`);
      }
    }
    expect(found).toEqual([]);
  });

  it('breaks no rule of its content security policy', () => {
    expect(failures).toEqual([]);
  });
});
