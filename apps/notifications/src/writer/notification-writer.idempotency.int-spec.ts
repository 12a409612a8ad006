import { aNotification } from '../../test/notifications';
import { stored, TwoWriters, withKey } from '../../test/two-writers';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { NotificationWriter } from './notification-writer';

describe(`${NotificationWriter.name} with an Idempotency-Key`, () => {
  let writers: TwoWriters;
  let writer: NotificationWriter;
  let otherWriter: NotificationWriter;

  beforeAll(async () => void (writers = await TwoWriters.start()));
  beforeEach(() => {
    writers.renew();
    ({ writer, otherWriter } = writers);
  });
  afterEach(() => writers.empty());
  afterAll(() => writers?.stop());

  it('returns the first answer again, also for a repetition with another id', async () => {
    await expect(writer.add(withKey('k', { id: 'made-1' }))).resolves.toEqual(stored('made-1'));
    await expect(writer.add(withKey('k', { id: 'made-2' }))).resolves.toEqual(stored('made-1'));
    expect(await writers.ids()).toEqual(['made-1']);
  });

  it('returns it to a redelivery, which has the same id', async () => {
    const redelivered = () => writer.add(withKey('k', { id: 'same' }));
    expect([await redelivered(), await redelivered()]).toEqual([stored('same'), stored('same')]);
  });

  it('returns it to one with a near deadline, which has another queue and waits for the answer', async () => {
    const first = writer.add(withKey('k', { id: 'first' }));
    const hurried = writer.add(withKey('k', { id: 'hurried', deadline: Date.now() + 1900 }));
    expect([await first, await hurried]).toEqual([stored('first'), stored('first')]);
  });

  it('refuses another request under the same key', async () => {
    await writer.add(withKey('k', { id: 'n1' }));
    await expect(writer.add(withKey('k', { id: 'n2' }, 'another'))).resolves.toEqual({ outcome: 'keyReused' });
    expect(await writers.ids()).toEqual(['n1']);
  });

  it('has one effect for 50 parallel requests over two writers', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (index % 2 ? writer : otherWriter).add(withKey('k', { id: `made-${index}` }))),
    );
    expect(await writers.count('notifications')).toBe(1);
    const [only] = await writers.ids();
    expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome)))).toEqual(new Set([JSON.stringify(stored(only ?? ''))]));
  });

  it('does not delay other notifications, even with many repetitions', async () => {
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    const repeated = Array.from({ length: 150 }, (_, index) => writer.add(withKey('k', { id: `made-${index}` })));
    await writer.add(aNotification({ id: 'other' }));
    expect(insert.mock.calls[0]?.[0].map(({ id }) => id)).toEqual(['made-0', 'other']);
    insert.mockRestore();
    expect(new Set((await Promise.all(repeated)).map(({ outcome }) => outcome))).toEqual(new Set(['stored']));
    expect(await writers.ids()).toEqual(['made-0', 'other']);
  });

  it('does not keep a key whose request was refused', async () => {
    await writer.add(aNotification());
    await expect(writer.add(withKey('k', { documentId: 'other' }))).resolves.toEqual({ outcome: 'different' });
    expect(await writers.count('idempotency_keys')).toBe(0);
  });

  it('keeps the key of a repetition with a known id', async () => {
    await writer.add(aNotification());
    await expect(writer.add(withKey('k', {}))).resolves.toEqual(stored('n1'));
    await expect(writer.add(withKey('k', {}, 'another'))).resolves.toEqual({ outcome: 'keyReused' });
  });

  it('belongs to one of two repetitions of different notifications, in one writer and in two', async () => {
    await Promise.all([writer.add(aNotification({ id: 'a' })), writer.add(aNotification({ id: 'b' }))]);
    for (const rival of [writer, otherWriter]) {
      const key = rival === writer ? 'one' : 'two';
      const outcomes = await Promise.all([
        writer.add(withKey(key, { id: 'a' }, 'request a')),
        rival.add(withKey(key, { id: 'b' }, 'request b')),
      ]);
      expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['keyReused', 'stored']);
    }
  });

  it('belongs to one of them also when they come with the notifications that they repeat', async () => {
    const outcomes = await Promise.all([
      writer.add(aNotification({ id: 'a' })),
      writer.add(aNotification({ id: 'b' })),
      writer.add(withKey('k', { id: 'a' }, 'request a')),
      writer.add(withKey('k', { id: 'b' }, 'request b')),
    ]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['stored', 'stored', 'stored', 'keyReused']);
  });

  it('deletes keys older than a day when new ones are stored', async () => {
    for (const key of ['old', 'recent']) await writer.add(withKey(key, { id: key }));
    await writers.query(`UPDATE idempotency_keys SET created_at = now() - interval '26 hours' WHERE key = 'old'`);
    await writers.query(`UPDATE idempotency_keys SET created_at = now() - interval '24 hours' WHERE key = 'recent'`);
    await writer.add(withKey('new', { id: 'new' }));
    const keys = await writers.query<{ key: string }>('SELECT key FROM idempotency_keys ORDER BY key');
    expect(keys.map(({ key }) => key)).toEqual(['new', 'recent']);
  });

  it('is separate for each tenant', async () => {
    await writer.add(withKey('k', {}));
    await expect(writer.add(withKey('k', { apiKey: 'other tenant' }, 'another'))).resolves.toEqual(stored('n1'));
  });
});
