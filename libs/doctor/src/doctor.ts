import { Logger } from '@nestjs/common';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import type { Account } from '@app/rabbitmq-admin/accounts/rights';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { brokerTlsFiles, databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { lookAtAccount, waitingEvents } from './broker/accounts';
import { lookByManagement } from './broker/management';
import type { DoctorConfig } from './config';
import { lookAtServer } from './database/health';
import { lookAs, lookAtRole, SCHEMAS } from './database/roles';
import { Findings, type Finding } from './finding';
import { brokerServersOf, databaseServersOf, lookAtOwnCertificate, lookAtServers, managementServersOf } from './servers';

/** Looks at everything that the configuration names. Changes nothing. @returns what it found, the broker first */
export async function examine(config: DoctorConfig): Promise<Finding[]> {
  // Libraries log the same reasons, and stdout belongs to the result.
  Logger.overrideLogger(false);
  const [broker, database] = await Promise.all([examineBroker(config), examineDatabase(config)]);
  return [...broker.all, ...database.all];
}

async function examineBroker(config: DoctorConfig): Promise<Findings> {
  const findings = new Findings('broker');
  const tlsFiles = brokerTlsFiles(config);
  const accounts: Partial<Record<Account, string>> = {
    gateway: config.gatewayAmqpUrl,
    users: config.usersAmqpUrl,
    notifications: config.notificationsAmqpUrl,
    publisher: config.publisherAmqpUrl,
  };
  lookAtOwnCertificate(findings, tlsFiles);
  const urls = { 'full-rights': config.amqpUrl, ...accounts };
  const { amqpUrl, managementUrl } = config;
  await lookAtServers(findings, [
    ...Object.values(urls).flatMap((url) => (url ? brokerServersOf(url, tlsFiles) : [])),
    ...(managementUrl ? managementServersOf(managementUrl, tlsFiles) : []),
  ]);
  const isTrusted = trustOf(config);
  for (const [account, url] of Object.entries(urls) as [Account | 'full-rights', string | undefined][]) {
    if (!url) findings.skipped(`account ${account}`, 'its URL is not set');
    else
      await lookAtAccount(findings, account, { url, tlsFiles }, isTrusted(url)).catch((error: unknown) =>
        findings.problem(`account ${account}`, (error as Error).message, 'look at the log of the broker'),
      );
  }
  if (!managementUrl || !amqpUrl)
    findings.skipped('queues, nodes and rights', 'RABBITMQ_MANAGEMENT_URL and AMQP_URL are not both set');
  else await lookByManagement(findings, new ManagementApi(managementUrl, amqpUrl, { tlsFiles }), accounts);
  return findings;
}

/**
 * @returns whether users and notifications believe the account of a URL. Each believes its own, which is that of AMQP_URL where it has no URL, and
 * other accounts than those of the services need grants.
 */
function trustOf({ amqpUrl, gatewayAmqpUrl, usersAmqpUrl, notificationsAmqpUrl, trustedPublishers }: DoctorConfig) {
  const nameIn = (url: string) => parseBrokerUrl(url).username;
  const namesIn = (...urls: (string | undefined)[]) => urls.flatMap((url) => (url ? nameIn(url) : []));
  const ours = namesIn(gatewayAmqpUrl, usersAmqpUrl, notificationsAmqpUrl);
  const own = namesIn(usersAmqpUrl ?? amqpUrl, notificationsAmqpUrl ?? amqpUrl);
  return (url: string) => {
    const name = nameIn(url);
    return !ours.includes(name) || trustedPublishers.includes(name) || own.every((one) => one === name);
  };
}

async function examineDatabase(config: DoctorConfig): Promise<Findings> {
  const findings = new Findings('database');
  const tlsFiles = databaseTlsFiles(config);
  lookAtOwnCertificate(findings, tlsFiles);
  const urls = { users: config.usersDatabaseUrl, notifications: config.notificationsDatabaseUrl };
  await lookAtServers(
    findings,
    [...Object.values(urls), config.databaseUrl].flatMap((url) => (url ? databaseServersOf(url, tlsFiles) : [])),
  );
  for (const schema of SCHEMAS) {
    const url = urls[schema];
    if (!url) findings.skipped(`role ${schema}`, 'its URL is not set');
    else await lookAs(findings, schema, { url, tlsFiles }, (client) => lookAtRole(findings, client, schema));
  }
  const { databaseUrl: url } = config;
  if (!url) findings.skipped('settings, sessions, tables, outboxes, erasures and the copy', 'DATABASE_URL is not set');
  else {
    const { amqpUrl } = config;
    const atBroker = async () => (amqpUrl ? waitingEvents({ url: amqpUrl, tlsFiles: brokerTlsFiles(config) }) : undefined);
    await lookAs(findings, 'full-rights', { url, tlsFiles }, (client) => lookAtServer(findings, client, atBroker));
  }
  return findings;
}
