import type { ManagementApi } from '../management-api';

/** Marks the accounts that the tool made: it touches no other. */
export const TAG = 'collaboration-integration';

export interface User {
  name: string;
  /** A list, or with commas between before RabbitMQ 3.9. */
  tags: string[] | string;
}

export const isOurs = ({ tags }: User) => (Array.isArray(tags) ? tags : tags.split(',')).includes(TAG);

/** The names of all accounts that the tool made. */
export async function taggedAccounts(api: ManagementApi): Promise<string[]> {
  return ((await api.get<User[]>('users')) ?? []).filter(isOurs).map(({ name }) => name);
}
