import type { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { counted } from '@app/runtime/counted';
import type { Findings } from '../finding';

const MOST = 'max-connections';
/** A share of a limit that is worth a line. */
const MUCH = 0.8;

interface Limits {
  user?: string;
  value: Partial<Record<typeof MOST, number>>;
}

/** Compares the open connections with the limits of accounts and of the virtual host: over them the broker refuses new ones. */
export async function lookAtConnections(findings: Findings, api: ManagementApi): Promise<void> {
  const open = await api.list<{ user: string; vhost: string }>('connections?columns=user,vhost');
  const before = findings.all.length;
  const compare = (subject: string, used: number, most: number | undefined, action: string) => {
    // A negative limit is none.
    if (most !== undefined && most >= 0 && used > most * MUCH) findings.warning(subject, `${used} of ${most} are in use`, action);
  };
  const vhost = decodeURIComponent(api.vhost);
  const here = open.filter((connection) => connection.vhost === vhost);
  // The limit of an account counts its connections to all virtual hosts.
  for (const { user, value } of (await api.get<Limits[]>('user-limits')) ?? [])
    compare(
      `connections of ${user}`,
      here.some((connection) => connection.user === user) ? open.filter((connection) => connection.user === user).length : 0,
      value[MOST],
      `let it close what it does not need, or run "npm run accounts -- change ${user} --connections N"`,
    );
  for (const { value } of (await api.get<Limits[]>(`vhost-limits/${api.vhost}`)) ?? [])
    compare('connections of the virtual host', here.length, value[MOST], 'raise its limit with "rabbitmqctl set_vhost_limits"');
  if (findings.all.length === before)
    findings.ok('connections', `${counted(here.length, 'is', 'are')} open, and no limit is near`);
}
