import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority, PemDirectory } from '@app/testing/authority';
import { TlsFilesError, tlsOptions, tlsProblem } from './tls-files';

describe(tlsOptions.name, () => {
  let root: string;
  let authority: Authority;
  let warnings: string[];
  let number = 0;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'tls-files-'));
    authority = await Authority.create('test');
  });
  beforeEach(() => void (warnings = []));
  afterAll(() => rmSync(root, { recursive: true }));

  const complete = async () =>
    new PemDirectory(join(root, String(number++))).write({ ca: authority.pem, ...(await authority.issue('client')) });
  const read = (files: Parameters<typeof tlsOptions>[0]) => tlsOptions(files, (problem) => void warnings.push(problem));

  it('always verifies the server', () => {
    expect(read({})).toMatchObject({ rejectUnauthorized: true });
  });

  it('parses files again only when they have changed', async () => {
    const pem = await complete();
    const first = read(pem.tlsFiles).secureContext;
    expect(read(pem.tlsFiles).secureContext).toBe(first);
    pem.write(await authority.issue('client'));
    expect(read(pem.tlsFiles).secureContext).not.toBe(first);
  });

  it('goes on with the previous files while certificate and key do not fit, and warns once', async () => {
    const pem = await complete();
    const { secureContext } = read(pem.tlsFiles);
    const { cert, key } = await authority.issue('client');
    pem.write({ cert });
    expect(read(pem.tlsFiles).secureContext).toBe(secureContext);
    expect(read(pem.tlsFiles).secureContext).toBe(secureContext);
    expect(warnings).toEqual(['the TLS files cannot be used: key values mismatch; the previous ones are still used']);
    pem.write({ key });
    expect(read(pem.tlsFiles).secureContext).not.toBe(secureContext);
    pem.write({ cert: (await authority.issue('client')).cert });
    read(pem.tlsFiles);
    expect(warnings).toHaveLength(2);
  });

  it.each(['', '\n', 'not a certificate'])(
    'does not trust the authorities of the system when the file holds %j',
    async (content) => {
      const pem = await complete();
      writeFileSync(pem.file('ca'), content);
      expect(() => read(pem.tlsFiles)).toThrow(TlsFilesError);
      expect(() => read(pem.tlsFiles)).toThrow(`the TLS files cannot be used: ${pem.file('ca')} is not a PEM file`);
    },
  );

  it('names a missing file and a key that does not fit, without their content', async () => {
    const pem = await complete();
    expect(() => read({ caFile: join(root, 'none') })).toThrow(/ENOENT.*none/);
    pem.write({ key: (await authority.issue('client')).key });
    expect(() => read(pem.tlsFiles)).toThrow(/^the TLS files cannot be used: key values mismatch$/);
  });
});

describe(tlsProblem.name, () => {
  it.each([
    [{ code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' }, 'certificate has expired'],
    [{ code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', message: 'long\nmore', reason: 'short' }, 'short'],
    [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: 'names', reason: 'detail' }, 'names'],
    [{ code: 'ECONNREFUSED', message: 'connect' }, undefined],
    [{ code: '28000', message: 'secret' }, undefined],
    [undefined, undefined],
  ])('of %j is %j', (error, problem) => expect(tlsProblem(error)).toBe(problem));
});
