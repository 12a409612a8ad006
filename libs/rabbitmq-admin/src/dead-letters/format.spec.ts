import type { LetterSummary } from './dead-letter';
import { listLines } from './format';

const letter = (more: Partial<LetterSummary>): LetterSummary => ({
  queue: 'users.commands.dead',
  position: 1,
  id: 'm-1',
  operation: 'users.add.v1',
  status: 'NOT_FOUND',
  reason: 'No such organization.',
  origin: 'service',
  size: 2,
  unproved: [],
  ...more,
});

it('gives a long text of a publisher no line for itself, and no wide lines to others', () => {
  const long = 'x'.repeat(100_000);
  const texts = { requestId: long, apiKey: long, app: `${long} "`, operation: long, status: long, reason: long, account: long };
  const id = 'i'.repeat(255);
  const [, evil, good] = listLines([letter({ id, ...texts }), letter({ position: 2 })]);
  expect(evil).toContain(` ${id} `);
  expect(evil.length).toBeLessThan(1500);
  expect(good.length).toBeLessThan(1000);
  expect(evil).toMatch(/ x{79}… .* x{499}…$/);
});
