import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';

/** PEM files with which a client opens TLS connections. */
export interface TlsFiles {
  /** Authorities that sign the certificates of servers. Default: the authorities of the system. */
  caFile?: string;
  /** The client's own certificate, for servers that demand one. It needs `keyFile`. */
  certFile?: string;
  keyFile?: string;
}

/** Options of `tls.connect()`. */
export interface TlsOptions {
  secureContext: SecureContext;
  rejectUnauthorized: true;
}

/** The last usable content of some files, and the problem that they have had since. */
interface Usable {
  content: string;
  context: SecureContext;
  problem?: string;
}

const usable = new Map<string, Usable>();

/** The files cannot be used, and never could in this process. */
export class TlsFilesError extends Error {
  readonly code = 'ERR_TLS_FILES';
}

/**
 * Reads the files for one attempt to connect, so that replaced certificates count from the next connection on. Files that do not fit together,
 * because they are just being replaced, leave the previous ones in use.
 *
 * @param warn gets each new problem of files that were usable earlier
 * @throws TlsFilesError with paths, and never with a content
 */
export function tlsOptions(files: TlsFiles, warn: (problem: string) => void): TlsOptions {
  const id = JSON.stringify([files.caFile, files.certFile, files.keyFile]);
  const previous = usable.get(id);
  try {
    const pem = { ca: contentOf(files.caFile), cert: contentOf(files.certFile), key: contentOf(files.keyFile) };
    const content = JSON.stringify(pem);
    // Parsing the authorities of a system takes milliseconds.
    const context = previous?.content === content ? previous.context : createSecureContext(pem);
    usable.set(id, { content, context });
    return optionsOf(context);
  } catch (error) {
    const problem = `the TLS files cannot be used: ${tlsProblem(error) ?? (error as Error).message}`;
    if (!previous) throw new TlsFilesError(problem);
    if (problem !== previous.problem) warn(`${problem}; the previous ones are still used`);
    previous.problem = problem;
    return optionsOf(previous.context);
  }
}

// Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would switch the verification off.
const optionsOf = (secureContext: SecureContext): TlsOptions => ({ secureContext, rejectUnauthorized: true });

function contentOf(file: string | undefined): string | undefined {
  if (!file) return undefined;
  const content = readFileSync(file, 'utf8');
  // An empty authority would mean all authorities of the system.
  if (!content.includes('-----BEGIN ')) throw new Error(`${file} is not a PEM file`);
  return content;
}

/** Codes of OpenSSL, of its certificate verification and of Node's TLS. */
const TLS_CODE =
  /^(ERR_(TLS|SSL|OSSL)_|EPROTO$|UNABLE_TO_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_(CA|PURPOSE)$|PATH_LENGTH_)/;

/** The reason in one line when TLS is the problem, such as an expired certificate; undefined for other errors. It has no secrets. */
export function tlsProblem(error: unknown): string | undefined {
  const { code, message, reason } = (error ?? {}) as { code?: unknown; message?: string; reason?: string };
  if (typeof code !== 'string' || !TLS_CODE.test(code)) return undefined;
  // `reason` of an OpenSSL error is the readable part of its message.
  const own = code.startsWith('ERR_TLS_') ? message : (reason ?? message);
  return own?.split('\n')[0] || code;
}
