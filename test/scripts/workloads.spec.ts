import { Script } from './script';

describe('the workloads of the benchmark', () => {
  afterEach(() => Script.endAll());

  const usersOf = (workload: string) =>
    new Script(`
      import { bodiesOf } from './bench/workloads.mjs';
      const next = bodiesOf({ name: '${workload}', requests: [{ userId: 'a' }, { userId: 'b' }] });
      const users = [];
      try {
        while (users.length < 5) users.push(JSON.parse(next()).data.userId);
      } catch ({ message }) {
        users.push(message);
      }
      console.log(JSON.stringify(users));`).next();

  it('read again and again: a run has more calls than there are users', async () => {
    expect(await usersOf('requests')).toEqual(['a', 'b', 'a', 'b', 'a']);
  });

  it('repeat no change', async () => {
    expect(await usersOf('requestsOnce')).toEqual(['a', 'b', 'there are no more than 2 requests']);
  });
});
