import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { notification } from '@app/testing/system/notification';
import type { System } from '@app/testing/system/system';

/** An event that its process does not publish at once waits for 5 s, until another process looks at the outbox. */
const BEFORE_SWEEP_MS = 4500;

/** Users that notifyAll reaches: the access rules, tested from outside. */
export const notifyAllReaches = (system: () => System): void =>
  describe('notifyAll', () => {
    let connection: ChannelModel;
    let channel: ConfirmChannel;

    beforeAll(async () => {
      connection = await connect(system().amqpUrl);
      channel = await connection.createConfirmChannel();
    });
    afterAll(async () => {
      await connection?.close();
    });

    const addUser = async (organizationId: string, userId: string, where: { documentId?: string; folderId?: string } = {}) => {
      const { status } = await system().call('users/add', { organizationId, users: [{ userId }], ...where });
      expect(status).toBe(200);
    };
    const notifyAll = async (organizationId: string, documentId: string) => {
      const toAll = { organizationId, documentId, notificationId: `to all of ${documentId}`, notifyAll: true };
      const { status } = await system().call('notifications/add', notification(toAll));
      expect(status).toBe(200);
    };
    const seen = async (
      organizationId: string,
      userId: string,
      filter: { documentId?: string; notificationIds?: string[] } = {},
    ) => {
      const { status, body } = await system().call('notifications/get', { organizationId, userId, ...filter });
      expect(status).toBe(200);
      return (body.result?.data as { metadata: { documentId: string } }[]).map(({ metadata }) => metadata.documentId).sort();
    };
    const setDocument = async (organizationId: string, documentId: string, access: string, folderId?: string) => {
      const body = Buffer.from(JSON.stringify({ organizationId, documentId, access, folderId }));
      channel.publish('commands', 'documents.set.v1', body, { headers: { 'x-api-key': 'demo-key' }, persistent: true });
      await channel.waitForConfirms();
    };

    it('reaches a user who was just added, every time', async () => {
      for (let time = 0; time < 30; time++) {
        await addUser('just', `u${time}`);
        if (time === 0) await notifyAll('just', 'd');
        expect(await seen('just', `u${time}`)).toEqual(['d']);
      }
    });

    it('reaches the users who may open the document, by each rule', async () => {
      const documents = ['plain', 'in folder', 'restricted', 'restricted in folder', 'public'];
      for (const documentId of documents) await notifyAll('rules', documentId);
      await setDocument('rules', 'in folder', 'organizationPrivate', 'f');
      await setDocument('rules', 'restricted', 'restricted');
      await setDocument('rules', 'restricted in folder', 'restricted', 'f');
      await setDocument('rules', 'public', 'public');
      await addUser('rules', 'of organization');
      await addUser('rules', 'of folder', { folderId: 'f' });
      await addUser('rules', 'of document', { documentId: 'restricted' });

      const expected: [string, string[]][] = [
        ['of organization', ['in folder', 'plain', 'public']],
        ['of folder', ['in folder', 'public', 'restricted in folder']],
        ['of document', ['public', 'restricted']],
        ['stranger', ['public']],
      ];
      // The order of events of different documents is not guaranteed.
      await eventually(async () => {
        for (const [userId, sees] of expected) expect(await seen('rules', userId)).toEqual(sees);
        return true;
      });
      for (const [userId, sees] of expected) {
        for (const documentId of documents) {
          expect(await seen('rules', userId, { documentId })).toEqual(sees.includes(documentId) ? [documentId] : []);
          const filter = { notificationIds: [`to all of ${documentId}`] };
          expect(await seen('rules', userId, filter)).toEqual(sees.includes(documentId) ? [documentId] : []);
        }
      }
    });

    it('follows when a known user is added elsewhere, and when a document changes', async () => {
      await notifyAll('later', 'd1');
      await notifyAll('later', 'd2');
      await addUser('later', 'u', { documentId: 'd1' });
      expect(await seen('later', 'u')).toEqual(['d1']);
      await addUser('later', 'u');
      await eventually(async () => (await seen('later', 'u')).join() === 'd1,d2', BEFORE_SWEEP_MS);
      await setDocument('later', 'd2', 'restricted');
      await eventually(async () => (await seen('later', 'u')).join() === 'd1', BEFORE_SWEEP_MS);
    });
  });
