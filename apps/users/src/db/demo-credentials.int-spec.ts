import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { hashOf } from '@app/api-keys/credentials';
import { AuthenticateHandler } from '../queries/authenticate.handler';
import { connectTestDatabase } from '../../test/users';
import { createDemoCredentials } from './demo-credentials';

it('creates the demo credentials once, and leaves them revoked', async () => {
  const { dataSource, close } = await connectTestDatabase();
  try {
    const apiKeys = new ApiKeysRepository(dataSource);
    const verdict = async () => {
      const request = { apiKey: 'demo-key', tokenHash: hashOf('demo-token').toString('hex') };
      return (await new AuthenticateHandler(apiKeys).authenticate(request)).verdict;
    };
    await createDemoCredentials(dataSource);
    await createDemoCredentials(dataSource);
    expect(await verdict()).toBe('accepted');
    expect(await dataSource.query('SELECT FROM tokens')).toHaveLength(1);
    await apiKeys.revokeAll('demo-key');
    await createDemoCredentials(dataSource);
    expect(await verdict()).toBe('refused');
  } finally {
    await close();
  }
});
