import type { DeadLetter } from './dead-letter';
import { matches } from './filter';

const letter = (body: string) => ({ message: { content: Buffer.from(body) } }) as DeadLetter;

describe('the condition --user', () => {
  it.each([
    ['{"userIds":["ada"]}', true],
    ['{"users":[{"userId":"\\u0061da","name":"Ada"}]}', true],
    ['{"userId":"ada-2","ada":true}', false],
    ['{"text":"by ada"}', false],
    // The beginning of a longer body.
    ['{"users":[{"userId":"ada","na', true],
    ['{"users":[{"userId":"ad', false],
    ['{"users":[{"userId":"\\u0061da","na', true],
    ['{"name":"\\"","userId":"\\u0061da","na', true],
  ])('%s: %s', (body, expected) => {
    expect(matches({ user: 'ada' }, letter(body))).toBe(expected);
  });

  it('reads a body of a mebibyte that never ends once', () => {
    const since = performance.now();
    for (const end of ['', '\\']) expect(matches({ user: 'ada' }, letter(`"${'\\"'.repeat(512 * 1024)}${end}`))).toBe(false);
    expect(performance.now() - since).toBeLessThan(1000);
  });
});
