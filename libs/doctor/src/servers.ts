import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate } from 'node:tls';
import { parseManagementUrl } from '@app/rabbitmq/management-url';
import { wantsTls } from '@app/postgres/connections/tls-client';
import { counted } from '@app/runtime/counted';
import { addressText, parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { databaseServers } from '@app/runtime/settings/database-url';
import { tlsOptions, tlsProblem, type TlsFiles } from '@app/runtime/settings/tls-files';
import { NO_ADDRESS, type Findings } from './finding';

/** A host and port of a URL. */
export interface Server {
  host: string;
  port: number;
  /** `postgres`: the client has to ask for it first. */
  tls?: 'at once' | 'postgres';
  tlsFiles: TlsFiles;
}

const MOST_MS = 5000;
const DAY_MS = 86_400_000;
/** The last days and the last part of the life of a certificate: in both it is a warning. A program replaces one that is made for some days. */
const SOON = { days: 30, part: 1 / 3 };
/** In these it is a problem. */
const AT_ONCE = { days: 7, part: 1 / 5 };
/** https://www.postgresql.org/docs/current/protocol-message-formats.html, "SSLRequest" */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/** The servers of a URL of RabbitMQ. */
export function brokerServersOf(url: string, tlsFiles: TlsFiles): Server[] {
  const { addresses, protocol } = parseBrokerUrl(url);
  return addresses.map((address) => ({ ...address, tls: protocol === 'amqps' ? 'at once' : undefined, tlsFiles }));
}

/** The servers of a URL of the management API. */
export const managementServersOf = (url: string, tlsFiles: TlsFiles): Server[] =>
  parseManagementUrl(url).map(({ hostname, port, protocol }) => ({
    host: withoutBrackets(hostname),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    tls: protocol === 'https:' ? 'at once' : undefined,
    tlsFiles,
  }));

/** The servers of a URL of PostgreSQL; none for one that leads to a socket file. */
export const databaseServersOf = (url: string, tlsFiles: TlsFiles): Server[] =>
  databaseServers(url).flatMap((one) => {
    const { hostname, port, searchParams } = new URL(one);
    const tls = wantsTls(one, tlsFiles) ? ('postgres' as const) : undefined;
    return searchParams.has('host') ? [] : [{ host: withoutBrackets(hostname), port: Number(port) || 5432, tls, tlsFiles }];
  });

const withoutBrackets = (hostname: string) => hostname.replace(/^\[|\]$/g, '');

/** Looks at each server by itself, because a connection to a cluster says nothing about its other nodes: name, reachability and certificate. */
export async function lookAtServers(findings: Findings, servers: readonly Server[]): Promise<void> {
  const distinct = new Map(servers.map((server) => [addressText(server), server]));
  for (const [address, server] of distinct) await lookAtOne(findings, `server ${address}`, server);
}

async function lookAtOne(findings: Findings, subject: string, server: Server): Promise<void> {
  const { host } = server;
  let addresses: string;
  try {
    addresses = isIP(host) ? '' : (await lookup(host, { all: true })).map(({ address }) => address).join(', ');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return findings.problem(subject, `its name does not resolve (${code})`, NO_ADDRESS);
  }
  const named = addresses && `, and its name stands for ${addresses}`;
  try {
    const validity = await validityOf(server);
    if (validity) judge(findings, subject, validity, named);
    else findings.ok(subject, `takes connections without TLS${named}`);
  } catch (error) {
    const untrusted = tlsProblem(error);
    if (untrusted)
      return findings.problem(
        subject,
        `its certificate is refused (${untrusted})`,
        'see "TLS" in docs/operations.md: the authority, the dates and the name of the certificate',
      );
    const { code, message } = error as NodeJS.ErrnoException;
    findings.warning(subject, `cannot be reached (${code ?? message})`, 'start it, and correct host and port of the URL');
  }
}

/** Looks at the certificate that our processes show: from its end on the servers refuse every new connection. */
export function lookAtOwnCertificate(findings: Findings, { certFile }: TlsFiles): void {
  if (!certFile) return;
  try {
    const { validFrom, validTo } = new X509Certificate(readFileSync(certFile));
    judge(findings, `file ${certFile}`, { from: Date.parse(validFrom), to: Date.parse(validTo) });
  } catch (error) {
    findings.problem(`file ${certFile}`, `is no certificate (${(error as Error).message})`, 'correct the path or the file');
  }
}

/** Times in milliseconds. */
interface Validity {
  /** Absent: the certificate itself. */
  authority?: string;
  from: number;
  to: number;
}

/** A verified chain. A part that has ended already was not needed to verify it, such as the signature of an older authority. */
function endsFirst(certificate: DetailedPeerCertificate): Validity {
  const validityIn = ({ valid_from: from, valid_to: to }: DetailedPeerCertificate) => ({
    from: Date.parse(from),
    to: Date.parse(to),
  });
  let first: Validity = validityIn(certificate);
  // That of the last authority is itself.
  for (let one = certificate; one.issuerCertificate && one.issuerCertificate !== one;) {
    one = one.issuerCertificate;
    const validity = validityIn(one);
    if (validity.to > Date.now() && validity.to < first.to) first = { authority: nameOf(one), ...validity };
  }
  return first;
}

/** An authority may have no common name, and no name at all. */
function nameOf({ subject }: DetailedPeerCertificate): string {
  const { CN, O } = subject as Partial<typeof subject>;
  return CN ?? O ?? 'without a name';
}

/** @param more what else is known, when nothing is wrong */
function judge(findings: Findings, subject: string, { authority, from, to }: Validity, more = ''): void {
  const leftMs = to - Date.now();
  const days = Math.floor(leftMs / DAY_MS);
  const isIn = (last: typeof SOON) => days < last.days && leftMs < last.part * (to - from);
  const what = authority === undefined ? 'its certificate' : `the authority ${authority} of its certificate`;
  const found = leftMs < 0 ? `${what} has ended` : `${what} ends in ${counted(days, 'day')}`;
  const action = 'replace it: see "Rotate certificates" in docs/operations.md';
  if (isIn(AT_ONCE)) findings.problem(subject, found, action);
  else if (isIn(SOON)) findings.warning(subject, found, action);
  else findings.ok(subject, `${found}${more}`);
}

/** @returns that of the certificate in the chain that ends first; undefined without TLS */
async function validityOf({ host, port, tls, tlsFiles }: Server): Promise<Validity | undefined> {
  const socket = connectTcp({ host, port });
  socket.setTimeout(MOST_MS, () => socket.destroy(new Error(`no answer in ${MOST_MS / 1000} s`)));
  try {
    await once(socket, 'connect');
    if (!tls) return undefined;
    if (tls === 'postgres') {
      socket.write(SSL_REQUEST);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      if (answer.toString() !== 'S') throw new Error('it offers no TLS');
    }
    const secured = connectTls({ socket, host, servername: isIP(host) ? '' : host, ...tlsOptions(tlsFiles, () => undefined) });
    await once(secured, 'secureConnect');
    secured.on('error', () => undefined);
    return endsFirst(secured.getPeerCertificate(true));
  } finally {
    socket.on('error', () => undefined);
    socket.destroy();
  }
}
