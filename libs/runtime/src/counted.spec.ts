import { counted } from './counted';

it.each([
  [counted(0, 'letter'), '0 letters'],
  [counted(1, 'letter'), '1 letter'],
  [counted(2, 'letter'), '2 letters'],
  [counted(1, 'migration has', 'migrations have'), '1 migration has'],
  [counted(3, 'migration has', 'migrations have'), '3 migrations have'],
])('counts one thing, and several: %s', (text, expected) => {
  expect(text).toBe(expected);
});
