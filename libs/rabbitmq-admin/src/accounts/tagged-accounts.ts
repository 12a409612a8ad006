import type { ManagementApi } from '../management-api';

/** Tag of accounts that the tool has created. It changes no other account. */
export const TAG = 'collaboration-integration';

export interface User {
  name: string;
  /** A list; before RabbitMQ 3.9 a comma-separated string. */
  tags: string[] | string;
}

export const tagsOf = ({ tags }: User): string[] => (Array.isArray(tags) ? tags : tags.split(','));

export const isOurs = (user: User) => tagsOf(user).includes(TAG);

/** The names of all accounts that the tool has created. */
export async function taggedAccounts(api: ManagementApi): Promise<string[]> {
  return (await api.list<User>('users')).filter(isOurs).map(({ name }) => name);
}
