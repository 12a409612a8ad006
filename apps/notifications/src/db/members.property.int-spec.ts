import * as fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { MembersRepository, type CopiedMembership, type KnownMembership } from './members.repository';
import { partOf } from '../users-service/members-part';
import { PagesRepository } from './pages.repository';
import { DAY_MS, daysPass } from '../../test/days';
import { aNotification, testDatabase } from '../../test/notifications';
import { DOCUMENTS, LEVELS, Source, type Change } from '../../test/users-source';

const TENANT = ['tenant', 'org'] as const;

/** More than a user has. */
const ALL = 10;

/** A read that asks the users service: it looks at the copy, asks, and applies the answer, part by part. Events may come in between. */
type Question = { known?: KnownMembership[]; answer?: ReturnType<Source['answer']>; after?: CopiedMembership };

describe('the copy of the memberships of a user', () => {
  const database = testDatabase();
  let dataSource: DataSource;
  let members: MembersRepository;
  let pages: PagesRepository;
  let users = 0;

  beforeAll(async () => {
    [dataSource] = database.dataSources as [DataSource];
    members = new MembersRepository(dataSource);
    pages = new PagesRepository(dataSource);
    await members.setDocument(...TENANT, { documentId: 'filed', access: 'restricted', folderId: 'f', version: 1 });
    await members.setDocument(...TENANT, { documentId: 'secret', access: 'restricted', version: 1 });
    const toAll = DOCUMENTS.map((documentId) => aNotification({ id: documentId, documentId, notifyAll: true, to: [] }));
    await new InsertNotificationsRepository(dataSource).insert(toAll);
  });

  const visible = async (userId: string) => {
    const [apiKey, organizationId] = TENANT;
    const { notifications } = await pages.find({ apiKey, organizationId, userId }, { newestFirst: true, size: 10 });
    return notifications.map(({ id }) => id).sort();
  };

  const apply = async (userId: string, change: Change, today = change.day) => {
    const changed = [{ userId, version: change.version }];
    if (change.kind === 'left') await members.leave(...TENANT, changed);
    else if (change.kind === 'added')
      await members.add(...TENANT, LEVELS[change.document], changed, Date.now() - (today - change.day) * DAY_MS);
    else await members.remove(...TENANT, LEVELS[change.document], changed);
  };

  const isComplete = async (userId: string) => (await members.find(...TENANT, userId)).complete;

  const look = async (userId: string, question: Question, most = ALL) => {
    question.known = await members.known(...TENANT, userId, { after: question.after, most });
  };
  const complete = async (userId: string, { known, answer }: Question, most = ALL) => {
    const { end, ...part } = partOf(known!, answer!, most);
    await members.complete(...TENANT, userId, { ...part, more: end !== undefined });
    return end;
  };

  const permutations = <T>(list: readonly T[]): T[][] =>
    list.length === 0
      ? [[]]
      : list.flatMap((first, index) => permutations(list.toSpliced(index, 1)).map((rest) => [first, ...rest]));

  type Program = ((source: Source) => void)[];
  const PROGRAMS: [string, Program][] = [
    [
      'added, removed and added again',
      [
        (source) => source.add('secret'),
        (source) => source.remove('secret'),
        (source) => source.add('secret'),
        (source) => source.add('general'),
        (source) => source.remove('general'),
      ],
    ],
    [
      'added, gone and added elsewhere',
      [
        (source) => source.add('secret'),
        (source) => source.add('general'),
        (source) => source.leave(),
        (source) => source.add('secret'),
        (source) => source.add('filed'),
      ],
    ],
    [
      'added, removed and gone twice',
      [
        (source) => source.add('filed'),
        (source) => source.leave(),
        (source) => source.add('filed'),
        (source) => source.remove('filed'),
        (source) => source.add('general'),
        (source) => source.leave(),
      ],
    ],
  ];
  /** The source after a program, whose steps are one event each, and its answers before the first and after each of them. */
  const after = (program: Program) => {
    const source = new Source();
    const answers = [source.answer(ALL)];
    for (const step of program) {
      step(source);
      answers.push(source.answer(ALL));
    }
    return { source, events: source.events, answers, expected: source.visible().sort().join() };
  };

  it.each(PROGRAMS)('is that of the source after every order of the events of a user who was %s', async (_, program) => {
    const { events, answers, expected } = after(program);
    const orders = permutations(events);
    // A part of 720: the rest differs in the first event only.
    const chosen = orders.length > 120 ? orders.filter((__, index) => index % 6 === 0) : orders;
    const run = async (order: Change[], index: number) => {
      const userId = `user ${users++}`;
      const question: Question = { answer: answers.at(-1) };
      // The question begins and ends at places that differ from order to order, and one event comes twice.
      const begin = index % (order.length + 1);
      const end = begin + ((index * 7) % (order.length + 1 - begin));
      for (let place = 0; place <= order.length; place++) {
        if (place === begin) await look(userId, question);
        if (place === end) await complete(userId, question);
        if (place < order.length) await apply(userId, order[place]);
      }
      await apply(userId, order[index % order.length]);
      return { order, begin, end, visible: (await visible(userId)).join() };
    };
    const seen = await Promise.all(chosen.map(run));
    expect(seen.filter((one) => one.visible !== expected)).toEqual([]);
  });

  it.each(PROGRAMS)('is that of the source when it was asked at any time about a user who was %s', async (_, program) => {
    const { events, answers, expected } = after(program);
    const times = events.flatMap((__, begin) =>
      answers.slice(begin).flatMap((answer, later) => events.slice(begin + later).map((___, last) => ({ begin, answer, last }))),
    );
    const run = async ({ begin, answer, last }: (typeof times)[number]) => {
      const userId = `user ${users++}`;
      const question: Question = { answer };
      const end = events.length - last;
      for (const event of events.slice(0, begin)) await apply(userId, event);
      await look(userId, question);
      for (const event of events.slice(begin, end)) await apply(userId, event);
      await complete(userId, question);
      for (const event of events.slice(end)) await apply(userId, event);
      return { begin, answer, end, visible: (await visible(userId)).join() };
    };
    const seen = await Promise.all(times.map(run));
    expect(seen.filter((one) => one.visible !== expected)).toEqual([]);
  });

  it('is that of the source after any program, with events that are late, repeated or in another order', async () => {
    const document = fc.constantFrom(...DOCUMENTS);
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ act: fc.constant('add'), document }) },
      { weight: 2, arbitrary: fc.record({ act: fc.constant('remove'), document }) },
      { weight: 1, arbitrary: fc.record({ act: fc.constant('leave') }) },
      { weight: 4, arbitrary: fc.record({ act: fc.constant('deliver'), which: fc.nat() }) },
      { weight: 3, arbitrary: fc.record({ act: fc.constant('question') }) },
      { weight: 2, arbitrary: fc.record({ act: fc.constant('read') }) },
      { weight: 2, arbitrary: fc.record({ act: fc.constant('wait'), days: fc.constantFrom(1, 20, 32) }) },
    ) as fc.Arbitrary<{ act: string; document: string; which: number; days: number }>;
    const programs = fc.array(step, { minLength: 4, maxLength: 20 });
    const sizes = fc.constantFrom(1, 2, ALL);
    await fc.assert(
      fc.asyncProperty(programs, fc.nat(), sizes, sizes, async (steps, seed, most, page) => {
        const userId = `user ${users++}`;
        const source = new Source();
        const seen = new Set<Change>();
        let question: Question = {};
        const ask = async () => {
          if (!question.known) await look(userId, question, most);
          else if (!question.answer) question.answer = source.answer(page, question.after);
          else question = { after: await complete(userId, question, most) };
        };
        const end = async () => {
          while (question.known ?? question.after) await ask();
        };
        const read = async () => {
          if (!(await isComplete(userId))) await ask();
          await end();
        };
        for (const { act, document: of, which, days } of steps) {
          if (act === 'add') source.add(of);
          else if (act === 'remove') source.remove(of);
          else if (act === 'leave') source.leave();
          else if (act === 'question') await ask();
          else if (act === 'read') await read();
          else if (act === 'wait') {
            // A question takes seconds.
            question = {};
            source.day += days;
            await daysPass(dataSource, days);
          } else if (source.events.length > 0) {
            const event = source.events[which % source.events.length];
            seen.add(event);
            await apply(userId, event, source.day);
          }
        }
        const late = source.events.filter((event) => !seen.has(event));
        if (seed % 2) late.reverse();
        if (seed % 3) await end();
        for (const event of late) await apply(userId, event, source.day);
        await end();
        // An old addition lets the next read ask. Nothing else needs that.
        if (source.events.some(({ kind, day }) => kind === 'added' && source.day - day > 5)) await read();
        expect(await visible(userId)).toEqual(source.visible().sort());
      }),
      {
        numRuns: 150,
        // The addition comes when the removal is deleted.
        examples: [
          [
            ['add', 'read', 'remove', 'deliver', 'wait'].map((act) => ({ act, document: 'secret', which: 1, days: 32 })),
            0,
            ALL,
            ALL,
          ],
        ],
      },
    );
  });

  it('asks again when an addition without a version may be newer than a removal', async () => {
    const unversioned = (userId: string) => members.add(...TENANT, LEVELS.secret, [{ userId }]);
    for (const [userId, ending, asked] of [
      ['never removed', undefined, false],
      ['removed', { kind: 'removed', document: 'secret', version: 7, day: 0 }, true],
      ['gone', { kind: 'left', version: 7, day: 0 }, true],
    ] as [string, Change | undefined, boolean][]) {
      await members.complete(...TENANT, userId, { memberships: [LEVELS.general], wrong: [] });
      if (ending) await apply(userId, ending);
      await unversioned(userId);
      expect([userId, await isComplete(userId)]).toEqual([userId, !asked]);
    }
  });
});
