import { changesOf, withoutUsers } from './erased-content';

const ada = { userId: 'ada', name: 'Ada' };
const bob = { userId: 'bob', name: 'Bob' };
const content = (differences: object = {}) => ({
  actionUser: bob,
  displayHeadlineMessageTemplate: 'ada wrote',
  notifyUsers: [bob],
  ...differences,
});
const erased = (value: object | string, ...userIds: string[]) => {
  const json = withoutUsers(typeof value === 'string' ? value : JSON.stringify(value), new Set(userIds));
  return json === undefined ? undefined : (JSON.parse(json) as object);
};

describe('withoutUsers', () => {
  it('changes nothing where only texts, keys and source data have the id', () => {
    const data = { ada: 1, text: 'ada', list: [ada] };
    expect(erased(content({ notificationSourceData: { ada }, displayHeadlineMessageTemplateData: data }), 'ada')).toBeUndefined();
  });

  it('replaces the actor and each user among the template values, and takes out notified users', () => {
    const data = { actionUser: ada, reviewer: ada, recipientUser: bob, place: null };
    expect(
      erased(content({ actionUser: ada, notifyUsers: [ada, bob, ada], displayHeadlineMessageTemplateData: data }), 'ada'),
    ).toEqual(
      content({
        actionUser: { userId: 'erased' },
        displayHeadlineMessageTemplateData: {
          actionUser: { userId: 'erased' },
          reviewer: { userId: 'erased' },
          recipientUser: bob,
          place: null,
        },
      }),
    );
  });

  it('takes out several users, and is done when there is nothing more to take out', () => {
    const once = erased(content({ actionUser: ada }), 'ada', 'bob');
    expect(once).toMatchObject({ actionUser: { userId: 'erased' }, notifyUsers: [] });
    expect(erased(once!, 'ada', 'bob')).toBeUndefined();
  });

  it('keeps names such as __proto__', () => {
    const json = withoutUsers(
      '{"actionUser":{"userId":"ada"},"notifyUsers":[],"displayHeadlineMessageTemplateData":{"__proto__":{"userId":"ada"},"b":1}}',
      new Set(['ada']),
    );
    expect(json).toContain('"displayHeadlineMessageTemplateData":{"__proto__":{"userId":"erased"},"b":1}');
  });
});

describe('changesOf', () => {
  const hit = (id: string, differences: object) => ({ id, content: JSON.stringify(content(differences)) });

  it('has those that change, with what they were and will be', async () => {
    const hits = [hit('named', { notifyUsers: [ada, bob] }), hit('other', {})];
    expect(await changesOf(hits, new Set(['ada']))).toEqual([{ ...hits[0], next: JSON.stringify(content()) }]);
  });

  it('lets other work run between large contents', async () => {
    const order: string[] = [];
    setImmediate(() => order.push('other work'));
    const large = hit('large', { displayBodyMessage: 'x'.repeat(128 * 1024) });
    await changesOf([large, large], new Set(['ada'])).then(() => order.push('changes'));
    expect(order).toEqual(['other work', 'changes']);
  });
});
