import { soFar } from './so-far';

it('says how far work is every 5 s', () => {
  jest.useFakeTimers();
  const lines: string[] = [];
  const say = soFar((line) => lines.push(line));
  for (let rows = 0; rows < 12; rows++) {
    say('users', rows);
    jest.advanceTimersByTime(1000);
  }
  jest.useRealTimers();
  expect(lines).toEqual(['users: 5 so far', 'users: 10 so far']);
});
