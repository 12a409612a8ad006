import { RunningGateway } from '../../test/running-gateway';
import { openApiDocument } from './document';

describe('the documentation page', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  const get = (path: string) => gateway.send({ method: 'GET', path });

  it.each(['/docs', '/docs/'])('answers at %s without credentials, and may load nothing from elsewhere', async (path) => {
    const { status, headers, text } = await get(path);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['x-request-id']).toBeTruthy();
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    expect(headers['content-security-policy']).not.toMatch(/https?:|\*/);
    expect(text).not.toMatch(/https?:\/\/|"\/\//);
  });

  it('has every file it names', async () => {
    const { text } = await get('/docs');
    const files = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file);
    expect(files).toHaveLength(4);
    for (const file of files) {
      const { status, text: content } = await get(file);
      expect([file, status]).toEqual([file, 200]);
      expect(content.length).toBeGreaterThan(100);
    }
  });

  it('shows the document that is served, and asks no other server about it', async () => {
    const { text } = await get('/docs/start.js');
    expect(text).toContain("url: '/openapi.json'");
    expect(text).toContain('validatorUrl: null');
    expect(text).toContain('persistAuthorization: true');
    const served = await get('/openapi.json');
    expect(served.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(served.json()).toEqual(openApiDocument());
  });
});
