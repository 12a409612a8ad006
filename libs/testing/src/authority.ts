import 'reflect-metadata';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { randomBytes, webcrypto } from 'node:crypto';
import { join } from 'node:path';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
  type X509Certificate,
} from '@peculiar/x509';

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

const newKeys = () => webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);

/** A certificate and its key, as PEM. */
export interface Identity {
  cert: string;
  key: string;
}

/** A private certificate authority for one test file. */
export class Authority {
  private constructor(
    private readonly certificate: X509Certificate,
    private readonly keys: webcrypto.CryptoKeyPair,
  ) {}

  /**
   * @param name its common name, or a whole name such as `O=ours`
   * @param validMs how long it is valid from now on; negative: it has expired
   * @param ageMs how long it has been valid
   * @param of the authority with these keys; absent: new ones
   */
  static async create(name: string, validMs = YEAR_MS, ageMs = 2 * HOUR_MS, of?: Authority): Promise<Authority> {
    const keys = of?.keys ?? (await newKeys());
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: randomBytes(8).toString('hex'),
      name: name.includes('=') ? name : `CN=${name}`,
      keys,
      signingAlgorithm: KEYS,
      notBefore: new Date(Date.now() - ageMs),
      notAfter: new Date(Date.now() + validMs),
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new Authority(certificate, keys);
  }

  /** The certificate of the authority. */
  get pem(): string {
    return `${this.certificate.toString('pem')}\n`;
  }

  /**
   * @param name also the only host name in it
   * @param validMs how long it is valid from now on; negative: it has expired
   * @param ageMs how long it has been valid
   */
  async issue(name: string, validMs = HOUR_MS, ageMs = 2 * HOUR_MS): Promise<Identity> {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create({
      serialNumber: randomBytes(8).toString('hex'),
      subject: `CN=${name}`,
      issuer: this.certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.keys.privateKey,
      signingAlgorithm: KEYS,
      notBefore: new Date(Date.now() - ageMs),
      notAfter: new Date(Date.now() + validMs),
      extensions: [
        new SubjectAlternativeNameExtension([{ type: 'dns', value: name }]),
        await AuthorityKeyIdentifierExtension.create(this.keys.publicKey),
      ],
    });
    const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { cert: `${certificate.toString('pem')}\n`, key: `${PemConverter.encode(key, 'PRIVATE KEY')}\n` };
  }
}

/** A directory with `ca.pem`, `cert.pem` and `key.pem`. */
export class PemDirectory {
  constructor(readonly path: string) {
    mkdirSync(path, { recursive: true });
  }

  file(name: 'ca' | 'cert' | 'key'): string {
    return join(this.path, `${name}.pem`);
  }

  /** Replaces each file atomically, as every tool for rotation should. */
  write(content: { ca?: string } & Partial<Identity>): this {
    for (const [name, pem] of Object.entries(content)) {
      const path = this.file(name as 'ca' | 'cert' | 'key');
      writeFileSync(`${path}.new`, pem, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
    return this;
  }

  get tlsFiles(): { caFile: string; certFile: string; keyFile: string } {
    return { caFile: this.file('ca'), certFile: this.file('cert'), keyFile: this.file('key') };
  }
}
