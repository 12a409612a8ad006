import { Logger } from '@nestjs/common';
import { Client, type ClientConfig } from 'pg';
import { tlsOptions, type TlsFiles } from '@app/runtime/settings/tls-files';

export interface TlsClientConfig extends ClientConfig {
  /** With any of these files the connection uses TLS. */
  tlsFiles?: TlsFiles;
}

const logger = new Logger('Postgres');

/** Whether a connection uses TLS. */
export const wantsTls = (connectionString: string, tlsFiles: TlsFiles): boolean =>
  /[?&]sslmode=verify-full(&|$)/.test(connectionString) || Object.values(tlsFiles).some(Boolean);

/**
 * A connection that uses TLS when its URL has `sslmode=verify-full` or when there are files for it, and then verifies the server. The files are
 * read for each connection.
 */
export class TlsClient extends Client {
  /** @throws TlsFilesError when the files cannot be used and never could */
  constructor({ tlsFiles = {}, ...config }: TlsClientConfig = {}) {
    const { connectionString = '' } = config;
    super({
      ...config,
      // The driver would prefer `sslmode` to `ssl`, and so forget the files.
      connectionString: connectionString.replace(/(?<=[?&])sslmode=[^&]*&?/, ''),
      // Not undefined, because PGSSLMODE would count then.
      ssl: wantsTls(connectionString, tlsFiles) && tlsOptions(tlsFiles, (problem) => logger.warn(problem)),
    });
  }
}
