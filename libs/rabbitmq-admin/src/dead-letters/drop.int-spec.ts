import { AGAIN, DEAD, deadLetterBox, many } from '@app/testing/broker/dead-letter-box';

describe('dropping dead letters', () => {
  const box = deadLetterBox();

  it('deletes only matching dead letters', async () => {
    await box.bury([['m-1'], ['m-2', { 'x-dead-status': 'INTERNAL' }], ['m-3']]);
    const { audited, noted, done } = await box.tool('drop --status NOT_FOUND --yes');
    expect(done).toBe(true);
    expect(audited.map(({ id, outcome, action }) => [id, outcome, action])).toEqual([
      ['m-1', 'dropped', 'drop'],
      ['m-3', 'dropped', 'drop'],
    ]);
    expect(noted).toEqual(['2 dropped.']);
    expect(await box.ready(AGAIN)).toBe(0);
    expect(await box.takeIds(DEAD)).toEqual(['m-2']);
  });

  it('deletes any number permanently, and keeps the order of the others', async () => {
    await box.bury(many(900).map(([id], index) => [id, { 'x-api-key': index % 3 === 0 ? 'other' : 'key' }]));
    expect((await box.tool('drop --api-key key --yes')).audited).toHaveLength(600);
    expect(await box.ready(DEAD)).toBe(300);
    expect(await box.takeIds(DEAD)).toEqual(
      many(900)
        .flat()
        .filter((_, index) => index % 3 === 0),
    );
  });

  it('deletes nothing in a dry run', async () => {
    await box.bury([['m-1']]);
    expect((await box.tool('drop --all --dry-run')).audited).toMatchObject([{ outcome: 'would be dropped' }]);
    expect(await box.ready(DEAD)).toBe(1);
  });

  it('audits operator, action and dead letter, without the body', async () => {
    await box.bury([['m-1']]);
    const { audited } = await box.tool('drop --id m-1 --yes');
    expect(audited).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
        operator: expect.any(String) as string,
        action: 'drop',
        queue: DEAD,
        id: 'm-1',
        operation: 'users.add.v1',
        apiKey: 'key',
        publisher: null,
        outcome: 'dropped',
      },
    ]);
  });
});
