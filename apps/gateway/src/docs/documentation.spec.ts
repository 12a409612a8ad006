import { readFileSync } from 'node:fs';
import { RunningGateway } from '../../test/running-gateway';

const committed = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

describe('the documentation pages', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  const get = (path: string) => gateway.send({ method: 'GET', path });

  it.each(['/docs', '/docs/', '/docs/messages'])(
    'answers at %s without credentials, and may load nothing from other servers',
    async (path) => {
      const { status, headers, text } = await get(path);
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      expect(headers['x-request-id']).toBeTruthy();
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(headers['content-security-policy']).not.toMatch(/https?:|\*/);
      expect(text).toMatch(/<title>.+<\/title>/);
      expect(text).not.toMatch(/https?:\/\/|"\/\//);
    },
  );

  it.each<[string, string, number]>([
    ['/docs', '/docs/messages', 6],
    ['/docs/messages', '/docs', 3],
  ])('has every file that %s names, %s among them', async (path, other, count) => {
    const { text } = await get(path);
    const files = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file]) => file);
    expect(files).toHaveLength(count);
    expect(files).toContain(other);
    for (const file of files) {
      const { status, text: content } = await get(file);
      expect([file, status]).toEqual([file, 200]);
      expect(content.length).toBeGreaterThan(100);
    }
  });

  it('shows the served OpenAPI document, and calls no other server', async () => {
    const { text } = await get('/docs/start.js');
    expect(text).toContain("url: '/openapi.json'");
    expect(text).toContain('validatorUrl: null');
    expect(text).toContain('persistAuthorization: false');
    const served = await get('/openapi.json');
    expect(served.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(served.json()).toEqual(committed('openapi.json'));
  });

  it('shows the served page of messages', async () => {
    const served = await get('/asyncapi.json');
    expect(served.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(served.json()).toEqual(committed('asyncapi.json'));
  });
});
